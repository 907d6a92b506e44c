import { existsSync } from 'node:fs'
import { findProgram } from '../../packages/testing/src/findProgram.ts'

export const architectures = ['arm64', 'x64'] as const
export type Architecture = (typeof architectures)[number]

/** The emulator for another architecture, and the folder with that architecture's C libraries. */
export type Emulator = { program: string; libraries: string }

const NAMES = {
  arm64: { program: 'qemu-aarch64', libraries: '/usr/aarch64-linux-gnu', debian: 'arm64' },
  x64: { program: 'qemu-x86_64', libraries: '/usr/x86_64-linux-gnu', debian: 'amd64' },
}

/** Undefined if the emulator or the libraries are not installed. */
export function findEmulator(arch: Architecture): Emulator | undefined {
  const { program, libraries } = NAMES[arch]
  const path = findProgram(program)
  return path !== undefined && existsSync(libraries) ? { program: path, libraries } : undefined
}

/** Debian's packages with the emulator and the libraries. */
export function listPackages(arch: Architecture): string {
  const libraries = ['libc6', 'libstdc++6', 'libgcc-s1'].map((name) => `${name}-${NAMES[arch].debian}-cross`)
  return ['qemu-user', ...libraries].join(' ')
}
