export interface Promotion {
  to: string
}
