import { HttpAdapterHost, NestFactory } from '@nestjs/core'
import { AppModule } from './app.module.js'
import { SluiceErrorFilter } from './sluice-error.filter.js'

async function bootstrap() {
  const app = await NestFactory.create(AppModule)
  app.useGlobalFilters(new SluiceErrorFilter(app.get(HttpAdapterHost).httpAdapter))
  app.enableShutdownHooks() // SIGTERM lets running jobs end
  await app.listen(process.env.PORT ?? 3000)
}
void bootstrap()
