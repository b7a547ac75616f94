import { Logger } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { AppModule } from './app.module.js'

async function bootstrap() {
  const app = await NestFactory.createApplicationContext(AppModule)
  app.enableShutdownHooks()
  Logger.log('Works', 'Worker')
}
void bootstrap()
