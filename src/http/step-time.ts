import type { Context } from './context.ts'

/**
 * Work over a whole queue, in steps: its signal ends it after half of the time a handler has, so that the other half is left
 * for the step under way. Its answer says where the same request goes on. So nothing goes on unseen after an answer that gave
 * up waiting.
 */
export async function inSteps<T>(context: Context, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController()
  const stop = () => controller.abort()
  const timer = setTimeout(stop, context.settings.handlerTimeoutMs / 2)
  context.isCut.addEventListener('abort', stop)
  if (context.isCut.aborted) stop()
  try {
    return await work(controller.signal)
  } finally {
    clearTimeout(timer)
    context.isCut.removeEventListener('abort', stop)
  }
}
