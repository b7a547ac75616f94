/** Where `sluice serve` listens unless told otherwise. */
export const defaultUrl = 'http://127.0.0.1:7717'
