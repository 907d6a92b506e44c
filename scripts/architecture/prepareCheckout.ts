import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  closeSync,
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import type { Architecture, Emulator } from './emulators.ts'

export type Checkout = {
  folder: string
  /** Starts the architecture's Node under the emulator. */
  node: string
}

/** A copy of the checkout with the dependencies and the pinned Node of another architecture. It is kept and brought up to date. */
export function prepareCheckout(root: string, arch: Architecture, emulator: Emulator): Checkout {
  const folder = join(root, '.countersign', arch)
  copySources(root, folder)
  installDependencies(folder, arch)
  const binary = installNode(folder, arch)
  for (const path of findExecutables(folder, arch)) emulate(path, emulator)
  return { folder, node: createNode(folder, binary, emulator) }
}

function copySources(root: string, folder: string): void {
  const args = ['ls-files', '-z', '--cached', '--others', '--exclude-standard']
  const listed = execFileSync('git', args, { cwd: root, encoding: 'utf8', maxBuffer: 2 ** 26 }).split('\0')
  const paths = listed.filter((path) => path !== '' && existsSync(join(root, path)))
  const copied = join(folder, '.countersign/copied.json')
  const earlier: string[] = existsSync(copied) ? JSON.parse(readFileSync(copied, 'utf8')) : []
  const kept = new Set(paths)
  for (const path of earlier) if (!kept.has(path)) rmSync(join(folder, path), { force: true })
  for (const path of paths) {
    cpSync(join(root, path), join(folder, path), { preserveTimestamps: true, verbatimSymlinks: true })
  }
  mkdirSync(dirname(copied), { recursive: true })
  writeFileSync(copied, JSON.stringify(paths))
}

/** Runs the set-up under this machine's Node, because npm is slow in an emulator. npm installs for the `process.arch` that it sees. */
function installDependencies(folder: string, arch: Architecture): void {
  const code = `Object.defineProperty(process, 'arch', { value: '${arch}' })`
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(code)}`
  execFileSync(process.execPath, ['scripts/bootstrap.mjs', 'true'], {
    cwd: folder,
    env: { ...process.env, NODE_OPTIONS },
    stdio: 'inherit',
  })
}

function installNode(folder: string, arch: Architecture): string {
  const runtime = join(folder, 'scripts/runtime')
  const name = `node-linux-${arch}`
  const { packages } = readLock(join(runtime, 'package-lock.json'))
  const version = packages[`node_modules/${name}`]?.version
  // npm writes this file last, so it proves that the install finished.
  const installed = join(runtime, 'node_modules/.package-lock.json')
  if (!existsSync(installed) || readLock(installed).packages[`node_modules/${name}`]?.version !== version) {
    console.log(`Installing Node ${version} for ${arch} …`)
    const platform = ['--include=optional', '--os=linux', '--libc=glibc', `--cpu=${arch}`]
    execFileSync('npm', ['ci', '--prefer-offline', ...platform], { cwd: runtime, stdio: 'inherit' })
  }
  return join(runtime, 'node_modules', name, 'bin/node')
}

function readLock(path: string): { packages: Record<string, { version: string }> } {
  return JSON.parse(readFileSync(path, 'utf8'))
}

/** The programs among the dependencies, such as PostgreSQL's. */
function findExecutables(folder: string, arch: Architecture): string[] {
  const paths = globSync(`node_modules/{,@*/}*linux-${arch}*/**`, { cwd: folder }).map((path) => join(folder, path))
  return paths.filter((path) => !/\.so\b|\.node$|\.elf$/.test(path) && isExecutable(path))
}

function isExecutable(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (!stat?.isFile() || (stat.mode & 0o111) === 0) return false
  const file = openSync(path, 'r')
  const start = Buffer.alloc(4)
  readSync(file, start)
  closeSync(file)
  return start.equals(Buffer.from('\x7fELF'))
}

/** Replaces a program by a script that starts it under the emulator, so that any process can start it. */
function emulate(path: string, { program, libraries }: Emulator): void {
  renameSync(path, `${path}.elf`)
  // PostgreSQL finds its other programs by its own name.
  writeScript(path, `exec '${program}' -L '${libraries}' -0 "$0" "$0.elf" "$@"`)
}

/** Tests start children with `process.execPath`. By default that is the emulated binary, which the kernel cannot run. */
function createNode(folder: string, binary: string, { program, libraries }: Emulator): string {
  const node = join(folder, '.countersign/bin/node')
  const preload = join(folder, '.countersign/execPath.cjs')
  writeFileSync(preload, `process.execPath = ${JSON.stringify(node)}\n`)
  writeScript(node, `exec '${program}' -L '${libraries}' '${binary}' --require '${preload}' "$@"`)
  return node
}

function writeScript(path: string, line: string): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, `#!/bin/sh\n${line}\n`)
  chmodSync(path, 0o755)
}
