import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { toEntropyMessage } from '@countersign/protocol'
import type { Witness } from '@countersign/receipt'
import type { EntropySource } from '../../../src/sign/entropy/entropySource.ts'
import type { Store } from '../../../src/store/openStore.ts'
import type { FakeClock } from '../../ports.ts'

export type FakeSatellite = {
  publicKey: string
  createWitness(parameters: { timestampMs: number; sequence?: number; value?: Uint8Array }): Witness
}

/** Signs samples with a separate key. */
export function createFakeSatellite(): FakeSatellite {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const hex = Buffer.from(publicKey.export({ format: 'jwk' }).x ?? '', 'base64url').toString('hex')
  let next = 0
  return {
    publicKey: hex,
    createWitness({ timestampMs, sequence = next++, value = randomBytes(32) }) {
      const signature = sign(null, toEntropyMessage({ value, timestampMs, sequence }), privateKey)
      return {
        source: 'fake',
        valueHex: Buffer.from(value).toString('hex'),
        signatureHex: signature.toString('hex'),
        publicKey: hex,
        timestamp: new Date(timestampMs).toISOString(),
        sequence,
      }
    },
  }
}

export type FakeSource = EntropySource & {
  isSigned: boolean
  /** The requested counts in order. */
  calls: number[]
  /** Its response to a count. */
  answer(count: number): Witness[] | Promise<Witness[]>
}

export function createFakeSource(satellite: FakeSatellite, clock: FakeClock): FakeSource {
  const source: FakeSource = {
    name: 'fake',
    isSigned: true,
    calls: [],
    answer: (count) => Array.from({ length: count }, () => satellite.createWitness({ timestampMs: clock.now() })),
    async getSamples(count) {
      source.calls.push(count)
      return source.answer(count)
    },
  }
  return source
}

export type FakeClaims = Pick<Store, 'claimSamples'> & {
  /** Every value with its first caller. */
  given: Set<string>
  offered: string[]
  /** Resolves when another claim has been answered and processed. */
  next(): Promise<void>
}

/** Claims like the database: the first claim of a value wins. */
export function createFakeClaims(): FakeClaims {
  const given = new Set<string>()
  const offered: string[] = []
  let resolvers: (() => void)[] = []
  return {
    given,
    offered,
    async claimSamples(witnesses) {
      offered.push(...witnesses.map(({ valueHex }) => valueHex))
      const mine = witnesses.filter(({ valueHex }) => {
        if (given.has(valueHex)) return false
        given.add(valueHex)
        return true
      })
      for (const resolve of resolvers) resolve()
      resolvers = []
      return mine
    },
    async next() {
      await new Promise<void>((resolve) => resolvers.push(resolve))
      await setImmediate()
    },
  }
}
