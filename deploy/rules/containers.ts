import { basename, posix } from 'node:path'
import { type LaunchedImage, launched } from '../launcher/launchers.ts'

/** One container, whichever kind of manifest it comes from. */
export type Container = {
  where: string
  image: string
  /** What follows the image's entry point; empty where the image says it. */
  args: readonly string[]
  env: Readonly<Record<string, string>>
  /** Folders and files that are put into it. */
  mounts: readonly string[]
}

/** The programs that read a configuration, or serve. */
const programs = ['enclave', 'coordinator', 'worker', 'web'] as const
export type Program = (typeof programs)[number]

/** Which of our images a container runs. */
export function imageOf({ image }: Pick<Container, 'image'>): LaunchedImage | undefined {
  // A reference may have a tag, a digest, or both.
  const name = /^countersign-([\w-]+)(:[^:@]*)?(@.*)?$/.exec(basename(image))?.[1] ?? ''
  return Object.hasOwn(launched, name) ? (name as LaunchedImage) : undefined
}

/** Which of our programs a container runs; undefined for other people's images, and for small scripts. */
export function programOf(container: Container): Program | undefined {
  const image = imageOf(container)
  if (image === undefined) return undefined
  return programs.find((name) => name === (container.args[0] ?? image))
}

/** Whether a container looks at a configuration, and ends. */
export function isDoctor(container: Pick<Container, 'image' | 'args'>): boolean {
  return imageOf(container) === 'coordinator' && container.args[0] === 'doctor'
}

/** Version or digest: `latest`, a bare name and a lone major number can be anything tomorrow. */
export function isPinned(image: string): boolean {
  return /@sha256:[0-9a-f]{64}$/.test(image) || /:v?\d+\.\d+[^:/]*$/.test(image)
}

/** Values of such names belong into files. */
export function isSecretName(name: string): boolean {
  return /(SECRET|PASSWORD|PRIVATE_KEY|TOKEN|DATABASE_URL)$/.test(name) && name !== 'ROOT_SECRET'
}

/** Interfaces of a confidential guest: the kernel's reports, and dstack's agent, which gives out the root secret. */
export const CONFIGFS = '/sys/kernel/config'
export const DSTACK_AGENT = '/var/run/dstack.sock'

/** Whether something else is put where a program looks for its guest: who plays dstack's agent chooses the root secret. */
export function isStandIn(target: string, source: string | undefined): boolean {
  return [CONFIGFS, DSTACK_AGENT].includes(posix.normalize(target)) && source !== target
}
