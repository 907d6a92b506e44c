import { readFileSync } from 'node:fs'
import { type Hex, parseCheckpointEvent, ServiceError, toHex, toLogId } from '@countersign/protocol'
import { sha256 } from '@noble/hashes/sha2.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import blockSchema from '../../spec/anchor-v1.block.schema.json' with { type: 'json' }
import partSchema from '../../spec/anchor-v1.part.schema.json' with { type: 'json' }
import { type AnchorVectors, createAnchorFiles } from '../../spec/createAnchorFiles.ts'
import { readAnchor } from './anchorBlock.ts'

const read = (path: string) => readFileSync(new URL(`../../spec/${path}`, import.meta.url))
const vectors = JSON.parse(read('anchor-v1.vectors.json').toString()) as AnchorVectors
const encode = (text: string) => new TextEncoder().encode(text)

test('the test files of anchor-v1 match the code byte for byte', async () => {
  for (const [path, content] of await createAnchorFiles()) {
    expect([path, read(path).equals(Buffer.from(content))]).toEqual([path, true])
  }
})

test.each(vectors.ids)('the id of $origin by $owner', ({ owner, origin, originHash, id }) => {
  expect(toHex(sha256(encode(origin)))).toBe(originHash)
  expect(toLogId(owner as Hex, sha256(encode(origin)))).toBe(id)
})

describe('Checkpoint events', () => {
  test.each(vectors.events)('parses $name', ({ topics, data, id, size, root, blockHash }) => {
    expect(parseCheckpointEvent({ topics, data })).toEqual({ id, size, root, block: blockHash })
  })

  test.each(vectors.malformedEvents)('rejects $name', ({ topics, data }) => {
    expect(() => parseCheckpointEvent({ topics, data })).toThrow(expect.objectContaining({ code: 'event_malformed' }))
  })
})

describe('anchors', () => {
  const isBlock = new Ajv2020({ strict: true }).compile(blockSchema)
  const isPart = new Ajv2020({ strict: true }).compile(partSchema)

  test.each(vectors.anchors)('gives the path of each entry up to $size', ({ block, blockHash, parts, ...expected }) => {
    expect(isBlock(JSON.parse(block))).toBe(true)
    for (const part of parts) expect(isPart(JSON.parse(part))).toBe(true)
    const anchor = readAnchor(encode(block), parts.map(encode))
    const paths = Object.keys(expected.paths).map((index) => [index, anchor.toPath(Number(index)).map(toHex)])
    expect({ size: anchor.size, root: toHex(anchor.root), paths: Object.fromEntries(paths) }).toEqual(expected)
    expect(toHex(sha256(encode(block)))).toBe(blockHash)
  })

  test.each(vectors.rejected)('rejects $name: $reason', ({ reason, block, parts }) => {
    expect(() => readAnchor(encode(block), parts.map(encode))).toThrow(ServiceError)
    const isInSchema = isBlock(JSON.parse(block)) && parts.every((part) => isPart(JSON.parse(part)))
    expect(isInSchema).toBe(reason !== 'it must match the schema')
  })
})
