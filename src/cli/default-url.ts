/** Where `sluice serve` listens unless told otherwise. */
export const defaultHost = '127.0.0.1'
export const defaultPort = 7717
export const defaultUrl = `http://${defaultHost}:${defaultPort}`
