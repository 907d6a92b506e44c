import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { createLauncher } from './launcher/createLauncher.ts'
import { createImageLauncher, type LaunchedImage, launched, NODE_ENV, NODE_FLAGS } from './launcher/launchers.ts'
import { read } from './test/manifests.ts'

describe('the file', () => {
  test('is static: one read-only executable segment, no loader, and a non-executable stack', () => {
    const file = Buffer.from(createImageLauncher('coordinator'))
    expect(file.subarray(0, 7).toString('hex')).toBe('7f454c46020101')
    const segments = Array.from({ length: file.readUInt16LE(56) }, (_, index) => {
      const at = Number(file.readBigUInt64LE(32)) + index * file.readUInt16LE(54)
      return { kind: file.readUInt32LE(at), flags: file.readUInt32LE(at + 4), bytes: file.readBigUInt64LE(at + 32) }
    })
    expect(segments).toEqual([
      { kind: 1, flags: 5, bytes: BigInt(file.length) },
      { kind: 0x6474e551, flags: 6, bytes: 0n },
    ])
    expect(file.length).toBeLessThan(8192)
  })

  test('is for Linux on x64, and starts and ends with its own code', () => {
    const file = Buffer.from(createImageLauncher('web'))
    expect([file.readUInt16LE(16), file.readUInt16LE(18)]).toEqual([2, 62])
    const [base, entry] = [Number(file.readBigUInt64LE(64 + 16)), Number(file.readBigUInt64LE(24))]
    const code = file.subarray(entry - base).toString('hex')
    // The first two instructions read the stack from the kernel; the last is `exit`.
    expect(code).toMatch(/^4989e44d8b2c24.*b83c0000000f05$/)
  })

  /** `launcher.x64.test.ts` runs the code. This test compares the bytes with those, also on processors that can't run them. */
  test('has the bytes that were tested on x64', () => {
    const programs = {
      first: { args: ['first.mjs'], env: ['HIDDEN'] },
      second: { args: ['second.mjs', 'own'], env: ['PORT', 'OIDC_*'], takesArguments: true },
    }
    const file = createLauncher({ node: '/bin/node', flags: NODE_FLAGS, folder: '/app', variable: NODE_ENV, programs })
    expect(createHash('sha256').update(file).digest('hex')).toBe(
      'be878eb11491003af0246ee5f17c2694d2e7a0c869c522ad4eee4b8615746c96',
    )
  })

  test('is reproducible, and differs between images', () => {
    const images = Object.keys(launched) as LaunchedImage[]
    const texts = [...images, ...images].map((image) => Buffer.from(createImageLauncher(image)).toString('hex'))
    expect(new Set(texts).size).toBe(4)
  })

  test('starts every image in production mode', () => {
    for (const image of Object.keys(launched) as LaunchedImage[]) {
      const text = Buffer.from(createImageLauncher(image)).toString('latin1')
      expect(text.match(/NODE_ENV=\w+\0/g), image).toEqual(['NODE_ENV=production\0'])
    }
  })

  test.each(['NODE_OPTIONS=', 'A B', '', '*', 'A*B'])('rejects %j as the name of a variable', (name) => {
    const programs = { x: { args: ['x.ts'], env: [name] } }
    expect(() => createLauncher({ node: '/n', flags: [], folder: '/', variable: 'A=b', programs })).toThrow(
      'invalid variable name',
    )
  })
})

describe('the names', () => {
  test('the doctor gets every setting of the programs that it checks', () => {
    const { coordinator, worker, doctor } = launched.coordinator
    const names: readonly string[] = doctor.env
    expect([...coordinator.env, ...worker.env].filter((name) => !names.includes(name))).toEqual([])
  })

  test('include no secret values and no variables that Node, OpenSSL or the loader obey', () => {
    const all = Object.values(launched).flatMap((programs) => Object.values(programs).flatMap(({ env }) => env))
    const names = [...new Set<string>(all)]
    expect(names.filter((name) => /^(LD_|NODE_|SSL_|OPENSSL_|npm_|GLIBC|HOME$|PATH$|TMPDIR$)/.test(name))).toEqual([])
    expect(names.filter((name) => /(SECRET|PASSWORD|PRIVATE_KEY|TOKEN|DATABASE_URL)$/.test(name))).toEqual([
      'ROOT_SECRET',
    ])
  })

  test("are all variables in .env.example except those that images don't support", () => {
    const explained = [...read('.env.example').matchAll(/^(?:# )?([A-Z][A-Z0-9_]*)=/gm)].map((match) => match[1] ?? '')
    const { enclave, coordinator, witness } = launched
    const names: string[] = [...enclave.enclave.env, ...coordinator.coordinator.env, ...witness.witness.env]
    const isNamed = (name: string) => names.includes(name) || /^OIDC_/.test(name)
    const missing = [...new Set(explained)].filter((name) => !isNamed(name) && !names.includes(`${name}_FILE`))
    expect(missing).toEqual([
      // Simulated hardware.
      'MOCK_ATTESTATION',
      'MOCK_QUOTE_LATENCY_MS',
      // Rejected on real hardware.
      'DSTACK_SOCKET',
      // The embedded IPFS node.
      'DATA_DIR',
      'IPFS_LISTEN',
      // Rejected in production.
      'WEBHOOK_ALLOW_LOOPBACK',
    ])
  })
})
