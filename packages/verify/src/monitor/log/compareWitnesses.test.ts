import { describe, expect, test } from 'vitest'
import { findCosignedSize, findSilent } from './witnesses.ts'

const settings = { witnesses: ['w1', 'w2', 'w3'], quorum: 2 }
const readers = { witnesses: ['r1', 'w3'], quorum: 2 }
const say = (witness: string, size: number) => ({ host: `${witness}.test`, witness, size, root: new Uint8Array(32) })

describe('a quorum', () => {
  test('consists of the witnesses of one policy, each counted once', () => {
    expect(findCosignedSize([say('w1', 5), say('w2', 4), say('w3', 3)], [settings])).toBe(4)
    expect(findCosignedSize([say('w1', 5), say('w1', 5)], [settings])).toBe(0)
    expect(findCosignedSize([say('w1', 5), say('r1', 5)], [settings])).toBe(0)
  })

  test('must satisfy every policy: the log may not show a size that fewer cosigned', () => {
    const answers = [say('w1', 5), say('w2', 5), say('w3', 3), say('r1', 4)]
    expect(findCosignedSize(answers, [settings, readers])).toBe(3)
    expect(findCosignedSize(answers, [settings, { witnesses: ['r1'], quorum: 1 }])).toBe(4)
    expect(findCosignedSize(answers.slice(0, 3), [settings, readers])).toBe(0)
  })

  test('of one policy does not show for another that there is nothing more', () => {
    const answers = [say('w1', 4), say('w2', 4)]
    expect(findSilent(answers, { policies: [settings], size: 4 })).toEqual([])
    expect(findSilent(answers, { policies: [settings, readers], size: 4 })).toEqual(['r1', 'w3'])
    expect(findSilent([...answers, say('r1', 4)], { policies: [settings, readers], size: 4 })).toEqual([])
    expect(findSilent([say('w1', 4), say('w2', 5)], { policies: [settings], size: 4 })).toEqual(['w2', 'w3'])
    // A witness that contradicts itself does not count.
    expect(findSilent([...answers, say('w2', 5)], { policies: [settings], size: 4 })).toEqual(['w2', 'w3'])
  })
})
