export { type StartRedisOptions, startRedis, type TestRedis } from './redis-server.ts'
