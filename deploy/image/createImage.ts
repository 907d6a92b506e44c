import { hash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type ImageName, imageNames } from '../measure/images.ts'
import type { Source } from '../measure/listSources.ts'
import { MeasureError } from '../measure/MeasureError.ts'
import { createManifest, type Manifest } from '../measure/manifest.ts'
import { createLayer, type LoadedSource } from './createLayer.ts'
import { createTar, type TarEntry } from './createTar.ts'
import { type ImageParameters, listImage } from './listImage.ts'

export type Image = {
  /** Of the image's manifest, as in registries: `sha256:` and hex. */
  digest: string
  /** The hash that `npm run measure` prints. */
  filesHash: string
  architecture: 'x64'
  /** Writes an OCI layout: to a tar archive if the path ends with `.tar`, otherwise to a new or empty folder. */
  writeTo: (path: string) => void
}

type Blob = { mediaType: string; digest: string; content: Uint8Array }

/** The same in every image, so that the digest depends only on the contents. */
const CREATED = '1970-01-01T00:00:00Z'

const descriptions = {
  enclave: {
    title: 'Countersign key enclave',
    description: 'Derives wallet keys, signs for users who are signed in, and has each batch quoted',
    port: 8090,
  },
  coordinator: {
    title: 'Countersign coordinator',
    description: 'Sign-in, wallets, signing with verified quotes, and the proofs that follow',
    port: 8080,
  },
  web: {
    title: 'Countersign web app',
    description: "The wallet, and the page on which a visitor's own browser verifies a proof",
    port: 8088,
  },
  witness: {
    title: 'Countersign witness',
    description: 'Cosigns checkpoints of transparency logs that continue what it has seen',
    port: 8095,
  },
} satisfies Record<ImageName, object>

/** Creates an OCI image whose bytes depend only on the checkout's files and the inputs. */
export async function createImage(parameters: ImageParameters): Promise<Image> {
  const { root, name } = parameters
  if (!imageNames.includes(name)) {
    throw new MeasureError([`unknown image: expected ${imageNames.join(', ')}, got ${name}`])
  }
  const sources = (await listImage(parameters)).map(load)
  const files = createManifest({ image: name, arch: 'x64' }, sources)
  const { version } = JSON.parse(readFileSync(join(root, 'packages/protocol/package.json'), 'utf8')) as {
    version: string
  }
  return { ...createLayout(files, sources, version), filesHash: files.hash, architecture: 'x64' }
}

/** Reads a file only once, so that manifest and layer can't differ. */
function load(source: Source): LoadedSource {
  if (!('from' in source)) return source
  const { path, from, isExecutable } = source
  return { path, content: readFileSync(from), isExecutable }
}

function createLayout(
  files: Manifest,
  sources: readonly LoadedSource[],
  version: string,
): Pick<Image, 'digest' | 'writeTo'> {
  const name = files.image
  const { tar, layer: content } = createLayer(sources)
  const layer = toBlob('application/vnd.oci.image.layer.v1.tar+gzip', content)
  const { title, description, port } = descriptions[name]
  const config = toJsonBlob('application/vnd.oci.image.config.v1+json', {
    created: CREATED,
    architecture: 'amd64',
    os: 'linux',
    config: {
      User: '65532:65532',
      ExposedPorts: { [`${port}/tcp`]: {} },
      // The launcher is static, so no loader reads the environment before it runs.
      Entrypoint: ['/bin/launch'],
      Cmd: [name],
      WorkingDir: '/app',
      Labels: {
        'org.opencontainers.image.title': title,
        'org.opencontainers.image.description': description,
        'org.opencontainers.image.licenses': 'AGPL-3.0-only',
        'org.opencontainers.image.version': version,
      },
      // Docker's extension, with times in nanoseconds.
      Healthcheck: {
        Test: ['CMD', '/bin/launch', 'health'],
        Interval: 10e9,
        Timeout: 5e9,
        StartPeriod: 30e9,
        Retries: 3,
      },
    },
    rootfs: { type: 'layers', diff_ids: [digestOf(tar)] },
    history: [{ created: CREATED, created_by: `npm run image -- ${name}` }],
  })
  const manifest = toJsonBlob('application/vnd.oci.image.manifest.v1+json', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.manifest.v1+json',
    config: describe(config),
    layers: [describe(layer)],
  })
  const index = toJsonBlob('application/vnd.oci.image.index.v1+json', {
    schemaVersion: 2,
    mediaType: 'application/vnd.oci.image.index.v1+json',
    manifests: [
      {
        ...describe(manifest),
        platform: { architecture: 'amd64', os: 'linux' },
        annotations: { 'org.opencontainers.image.ref.name': `countersign-${name}:${version}` },
      },
    ],
  })
  const entries = [
    { path: 'blobs', folder: true } as const,
    { path: 'blobs/sha256', folder: true } as const,
    ...[config, layer, manifest].map((blob) => toFile(`blobs/${blob.digest.replace(':', '/')}`, blob.content)),
    toFile('index.json', index.content),
    toFile('oci-layout', Buffer.from('{"imageLayoutVersion":"1.0.0"}')),
  ]
  return { digest: manifest.digest, writeTo: (path) => writeLayout(path, entries) }
}

function toFile(path: string, content: Uint8Array) {
  return { path, content, mode: 0o644 }
}

function toBlob(mediaType: string, content: Uint8Array): Blob {
  return { mediaType, digest: digestOf(content), content }
}

function toJsonBlob(mediaType: string, value: object): Blob {
  return toBlob(mediaType, Buffer.from(JSON.stringify(value)))
}

function digestOf(content: Uint8Array): string {
  return `sha256:${hash('sha256', content, 'hex')}`
}

function describe({ mediaType, digest, content }: Blob) {
  return { mediaType, digest, size: content.length }
}

function writeLayout(path: string, entries: readonly TarEntry[]) {
  if (path.endsWith('.tar')) {
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, createTar(entries))
    return
  }
  if (existsSync(path) && readdirSync(path).length > 0) throw new MeasureError([`${path} is not empty`])
  for (const entry of entries) {
    if ('folder' in entry) mkdirSync(join(path, entry.path), { recursive: true })
    else if ('content' in entry) writeFileSync(join(path, entry.path), entry.content)
  }
}
