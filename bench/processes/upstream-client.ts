import { connect, type Socket } from 'node:net'

/** Calls the recorder. Calls share a connection and are answered in order. */
export interface UpstreamClient {
  call(): Promise<void>
  close(): void
}

export async function connectUpstream(port: number, channel: number): Promise<UpstreamClient> {
  const socket: Socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve)
    socket.once('error', reject)
  })
  const waiting: (() => void)[] = []
  socket.on('data', (bytes) => {
    for (const answered of waiting.splice(0, bytes.length)) answered()
  })
  socket.on('error', () => {})
  socket.write(Buffer.from([channel]))
  const oneCall = Buffer.from([0])
  return {
    call(): Promise<void> {
      return new Promise((resolve) => {
        waiting.push(resolve)
        socket.write(oneCall)
      })
    },
    close: () => socket.destroy(),
  }
}
