import { listScripts } from '../launcher/launchers.ts'

/** arm64 is only for tests on arm64, which run the staged tree. */
export type Architecture = 'arm64' | 'x64'
/** The architecture of images. TDX and SEV-SNP machines and the launcher are x64. */
export const architectures: readonly Architecture[] = ['x64']

/** The contents of an image. */
export type Image = {
  /** Main files, relative to the repository. */
  entries: readonly string[]
  /** Folders that are served or read instead of imported. */
  folders: readonly string[]
  /** Modules imported on demand that this image never uses. */
  leftOut: readonly string[]
  /** Reviewed packages with computed imports, and the files that they load. */
  known: Readonly<Record<string, (arch: Architecture) => readonly string[]>>
  /** Optional packages that others try to load. */
  absent: readonly string[]
}

const nothing = () => []

/** libsecp256k1 as machine code, which the package has only for x64, and as WebAssembly, the fallback. */
const secp256k1 = {
  secp256k1: (arch: Architecture) => (arch === 'x64' ? ['prebuilds/linux-x64/secp256k1.glibc.node'] : []),
  // Loads the addon of the calling package.
  'node-gyp-build': nothing,
  'tiny-secp256k1': () => ['lib/secp256k1.wasm'],
}

/** libsodium, for Ed25519. */
const sodium = {
  'sodium-native': (arch: Architecture) => [`prebuilds/linux-${arch}/sodium-native.node`],
  // Loads the addon of the calling package.
  'require-addon': nothing,
}

/** Production rejects mock mode, so the simulator is left out. */
const simulator = '@countersign/attestation/simulator'

export const images = {
  enclave: {
    entries: listScripts('enclave'),
    folders: [],
    leftOut: [simulator],
    known: { ...secp256k1, ...sodium },
    absent: [],
  },
  coordinator: {
    entries: listScripts('coordinator'),
    folders: ['docs/site/dist'],
    // Leaves out the embedded IPFS node, which has two hundred packages and can't be shared by two workers. Images use Kubo or Pinata.
    leftOut: [simulator, './ipfs/helia.ts'],
    known: {
      ...secp256k1,
      ...sodium,
      // Read certificates named in DATABASE_URL, crontabs and /proc.
      pg: nothing,
      'pg-connection-string': nothing,
      'cron-parser': nothing,
      'prom-client': nothing,
    },
    absent: ['pg-native', 'bufferutil', 'utf-8-validate'],
  },
  web: {
    entries: listScripts('web'),
    folders: ['apps/web/dist'],
    leftOut: [],
    known: {},
    absent: [],
  },
  witness: {
    entries: listScripts('witness'),
    folders: [],
    leftOut: [],
    known: {},
    absent: [],
  },
} satisfies Record<string, Image>

export type ImageName = keyof typeof images
export const imageNames = Object.keys(images) as ImageName[]
