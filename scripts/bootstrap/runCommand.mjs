import { spawn } from 'node:child_process'
import { delimiter, dirname, join } from 'node:path'
import { nodeModules } from './paths.mjs'

export class Interrupted extends Error {
  name = 'Interrupted'

  constructor(signal) {
    super(`interrupted by ${signal}`)
    this.signal = signal
  }
}

/** Runs the command with our tools and our Node first on PATH. Returns its exit code, or throws `Interrupted`. */
export async function runCommand(node, command, args) {
  const PATH = [join(nodeModules, '.bin'), dirname(node.path), process.env.PATH].join(delimiter)
  const child = spawn(command, args, { stdio: 'inherit', env: { ...process.env, PATH } })

  // At a terminal the kernel has already sent Ctrl-C and Ctrl-\ to the child. A second signal would interrupt its clean-up.
  const atTerminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY
  // Once: if the whole process group gets the signal, the child already has it, and many programs exit at once after a second one.
  const passed = new Set()
  const passOn = (signal) => {
    if (!passed.has(signal)) child.kill(signal)
    passed.add(signal)
  }
  const hold = () => {}
  for (const signal of ['SIGTERM', 'SIGHUP']) process.on(signal, passOn)
  process.on('SIGUSR2', () => child.kill('SIGUSR2'))
  for (const signal of ['SIGINT', 'SIGQUIT']) process.on(signal, atTerminal ? hold : passOn)

  return new Promise((resolve, reject) => {
    child.on('error', (error) => {
      console.error(`${command}: ${error.code === 'ENOENT' ? 'command not found' : error.message}`)
      resolve(error.code === 'ENOENT' ? 127 : 126)
    })
    child.on('exit', (code, signal) => {
      if (signal === null) return resolve(code)
      process.removeAllListeners(signal)
      reject(new Interrupted(signal))
    })
  })
}
