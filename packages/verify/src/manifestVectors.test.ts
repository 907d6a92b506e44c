import { Ajv2020 } from 'ajv/dist/2020.js'
import { describe, expect, test } from 'vitest'
import manifestSchema from '../../attestation/spec/manifest-v1.schema.json' with { type: 'json' }
import vectors from '../../attestation/spec/manifest-v1.vectors.json' with { type: 'json' }
import { withCode } from '../test/withCode.ts'
import { parseManifest } from './parseManifest.ts'

const isInSchema = new Ajv2020({ strict: true, strictRequired: false, strictTypes: false }).compile(manifestSchema)

type Change = { path: string[]; value?: unknown }

function change(changes: readonly Change[]): unknown {
  const changed = structuredClone(vectors.manifest) as unknown as Record<string, unknown>
  for (const { path, ...value } of changes) {
    const [last = ''] = path.slice(-1)
    const parent = path.slice(0, -1).reduce((node, name) => node[name] as Record<string, unknown>, changed)
    if ('value' in value) parent[last] = value.value
    else delete parent[last]
  }
  return changed
}

describe('evidence, section 11: manifests', () => {
  test.each(vectors.cases)('$name', ({ changes, isValid, isInSchema: isExpectedInSchema }) => {
    const manifest = change(changes)
    const parse = () => parseManifest(JSON.stringify(manifest))
    if (isValid) expect(parse()).toEqual(manifest)
    else expect(parse).toThrow(withCode('manifest_malformed'))
    expect(isInSchema(manifest)).toBe(isExpectedInSchema)
  })

  test.each(vectors.texts)('rejects $name', ({ text }) => {
    expect(() => parseManifest(text)).toThrow(withCode('manifest_malformed'))
  })
})
