#!/usr/bin/env node
import { runCommandLine } from './command-line.ts'

// A reader that has seen enough, such as `head`, is no error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
  process.exit(0)
})
// Talk that nobody hears any more does not end the work, nor change its exit code.
process.stderr.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

void runCommandLine(process.argv.slice(2))
