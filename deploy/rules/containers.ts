import { basename } from 'node:path'

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

const programs = {
  enclave: 'services/enclave/src/main.ts',
  coordinator: 'services/coordinator/src/main.ts',
  worker: 'services/coordinator/src/worker.ts',
  web: 'deploy/web/server.ts',
} as const
export type Program = keyof typeof programs

/** What each image starts by default. */
const DEFAULTS: Record<string, Program> = {
  'countersign-enclave': 'enclave',
  'countersign-coordinator': 'coordinator',
  'countersign-web': 'web',
}

/** Which of our programs a container runs; undefined for other people's images, and for small scripts. */
export function programOf({ image, args }: Container): Program | undefined {
  const own = DEFAULTS[basename(image.replace(/(@sha256:.*|:[^:/]*)$/, ''))]
  if (own === undefined || args.length === 0) return own
  return (Object.keys(programs) as Program[]).find((name) => programs[name] === args.at(-1))
}

/** The file that Node reads more of the environment from. */
export function envFileOf({ args }: Container): string | undefined {
  return args.flatMap((arg) => /^--env-file=(.*)$/.exec(arg)?.[1] ?? [])[0]
}

/** Version or digest: `latest`, a bare name and a lone major number can be anything tomorrow. */
export function isPinned(image: string): boolean {
  return /@sha256:[0-9a-f]{64}$/.test(image) || /:v?\d+\.\d+[^:/]*$/.test(image)
}

/** Values of such names belong into files. */
export function isSecretName(name: string): boolean {
  return /(SECRET|PASSWORD|PRIVATE_KEY|TOKEN|DATABASE_URL)$/.test(name) && name !== 'ROOT_SECRET'
}
