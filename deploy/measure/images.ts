import { listScripts } from '../launcher/launchers.ts'

/** Tests on arm64 stage a tree for arm64, because they run it. */
export type Architecture = 'arm64' | 'x64'
/** The architecture of images: TDX and SEV-SNP machines are x64, and so is the launcher. */
export const architectures: readonly Architecture[] = ['x64']

/** What runs in an image. */
export type Image = {
  /** Files that Node is started with, from the root of the repository. */
  entries: readonly string[]
  /** Folders that are served or read, not imported. */
  folders: readonly string[]
  /** Modules that are imported on demand, and never by this image. */
  leftOut: readonly string[]
  /** Packages whose code picks at run time what it loads, each looked at, with the files it then loads. */
  known: Readonly<Record<string, (arch: Architecture) => readonly string[]>>
  /** Packages that others try to load and do without. */
  absent: readonly string[]
}

const nothing = () => []

/** libsecp256k1: as machine code, which the package has for x64 only, and as WebAssembly, which is the fallback. */
const secp256k1 = {
  secp256k1: (arch: Architecture) => (arch === 'x64' ? ['prebuilds/linux-x64/secp256k1.glibc.node'] : []),
  // Looks for the addon of the package that calls it.
  'node-gyp-build': nothing,
  'tiny-secp256k1': () => ['lib/secp256k1.wasm'],
}

/** libsodium, for Ed25519. */
const sodium = {
  'sodium-native': (arch: Architecture) => [`prebuilds/linux-${arch}/sodium-native.node`],
  // Looks for the addon of the package that calls it.
  'require-addon': nothing,
}

/** Mock mode is refused in production, so the simulator has no business there. */
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
    // The embedded IPFS node is two hundred packages, and two workers cannot share it: here it is Kubo or Pinata.
    leftOut: [simulator, './ipfs/helia.ts'],
    known: {
      ...secp256k1,
      ...sodium,
      // Certificates named in DATABASE_URL, crontabs, and /proc.
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
