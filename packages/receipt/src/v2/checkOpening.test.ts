import { withholdHalf } from '@countersign/protocol'
import { describe, expect, test } from 'vitest'
import { issueGolden } from '../../spec/createSpecFiles.ts'
import { check, failures, issue, statusOf } from '../../test/checkReceipt.ts'

const honest = await issueGolden({ kind: 'transaction' })

const encode = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))

describe('an opening', () => {
  for (const signing of [{ kind: 'message' }, { kind: 'typed-data' }] as const) {
    test(`of ${signing.kind}: both halves prove the content and the signer`, async () => {
      const files = await issue({ signing })
      const result = await check(files, { opening: encode(files.opening) })
      expect(result.verdict).toBe('mock')
      for (const id of ['opening', 'digest', 'signature'] as const) expect(statusOf(result, id)).toBe('pass')
    })

    test(`of ${signing.kind}: without one the rest still verifies`, async () => {
      const result = await check(await issue({ signing }))
      expect(result.verdict).toBe('mock')
      for (const id of ['opening', 'digest', 'signature'] as const) expect(statusOf(result, id)).toBe('skip')
    })

    test(`of ${signing.kind}: each half without the other`, async () => {
      const files = await issue({ signing })
      if (files.opening === undefined) throw new Error('no opening')
      const content = await check(files, { opening: encode(withholdHalf(files.opening, 'signature')) })
      expect([content.verdict, statusOf(content, 'digest'), statusOf(content, 'signature')]).toEqual([
        'mock',
        'pass',
        'skip',
      ])
      const signature = await check(files, { opening: encode(withholdHalf(files.opening, 'content')) })
      expect([signature.verdict, statusOf(signature, 'opening'), statusOf(signature, 'digest')]).toEqual([
        'mock',
        'pass',
        'skip',
      ])
    })
  }

  test('rejects one of another signature', async () => {
    const files = await issue({ signing: { kind: 'message' } })
    const other = await issue({ signing: { kind: 'message', content: { message: '0x00' } } })
    expect(failures(await check(files, { opening: encode(other.opening) }))).toEqual(['opening'])
    expect(failures(await check(files, { opening: encode('no opening') }))).toEqual(['opening'])
  })

  test('rejects one for a public signature', async () => {
    const { opening } = await issue({ signing: { kind: 'message' } })
    expect(failures(await check(honest, { opening: encode(opening) }))).toEqual(['opening'])
  })

  test('blocks reveal nothing of the signed content: not the content, digest, signature or salts', async () => {
    const files = await issue({ signing: { kind: 'message' } })
    if (typeof files.opening?.content !== 'object' || typeof files.opening.signature !== 'object') throw new Error()
    const { salt, digest } = files.opening.content
    const { salt: second, signature } = files.opening.signature
    const all = [files.bytes, ...Object.values(files.blocks)].map((block) => new TextDecoder().decode(block)).join()
    for (const secret of [salt, second, digest.slice(2), signature.slice(2), signature.slice(2, 66), '68656c6c6f']) {
      expect(all.includes(secret)).toBe(false)
    }
  })
})
