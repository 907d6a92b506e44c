import { MAX_RULES, ruleIndex, slug } from '@countersign/protocol'
import { boolean, natural, positive, type Schema, text, time } from '@countersign/protocol/schema'

export type JsonSchema = { readonly [keyword: string]: unknown }

/** Keywords to add to members, by path: `rules[].reasons`, or `transactions[].1.kind` in the second option of an `either`. */
export type SchemaWords = { readonly [path: string]: JsonSchema }

type Parameters = {
  /** Returns the reference to a schema that has a name in the document. */
  findReference(schema: Schema): JsonSchema | undefined
  words?: SchemaWords | undefined
}

/** Leaves are found by their function or pattern, because copies of a schema share these. */
const leaves = new Map<unknown, JsonSchema>([
  [natural.is, { type: 'integer', minimum: 0 }],
  [positive.is, { type: 'integer', minimum: 1 }],
  [ruleIndex.is, { type: 'integer', minimum: 0, maximum: MAX_RULES - 1 }],
  [text.pattern, { type: 'string' }],
  [slug.pattern, { type: 'string', pattern: '^[A-Za-z0-9_-]{22}$' }],
  [time.pattern, { type: 'string', format: 'date-time' }],
])

/** The JSON Schema of the values that a schema accepts. */
export function toJsonSchema(schema: Schema, parameters: Parameters, path = ''): JsonSchema {
  return finish(parameters.findReference(schema) ?? toShape(schema, parameters, path), schema, parameters.words?.[path])
}

/** The JSON Schema of a named schema, for the place where the document declares it. */
export function toComponent(schema: Schema, parameters: Parameters): JsonSchema {
  return finish(toShape(schema, parameters, ''), schema, parameters.words?.[''])
}

/** Words override keywords of the shape. Words with `anyOf` replace the whole shape. */
function finish(shape: JsonSchema, { or }: Schema, words: JsonSchema = {}): JsonSchema {
  if (words.anyOf !== undefined) return words
  return { ...shape, ...(or?.includes(null) && { type: [shape.type, 'null'] }), ...words }
}

function toShape(schema: Schema, parameters: Parameters, path: string): JsonSchema {
  const { options, items, members, pattern, values, is } = schema
  const inner = (schema: Schema, name: string) =>
    toJsonSchema(schema, parameters, path === '' ? name : `${path}.${name}`)
  if (options !== undefined) return { anyOf: options.map((option, index) => inner(option, String(index))) }
  if (items !== undefined) return { type: 'array', items: toJsonSchema(items, parameters, `${path}[]`) }
  if (members !== undefined) {
    const present = Object.entries(members).filter(([, { values }]) => values?.length !== 0)
    const required = present.filter(([, member]) => !isOptional(member)).map(([name]) => name)
    return {
      type: 'object',
      properties: Object.fromEntries(present.map(([name, member]) => [name, inner(member, name)])),
      ...(required.length > 0 && { required }),
      additionalProperties: false,
    }
  }
  if (values !== undefined) return { type: typeof values[0], ...(schema !== boolean && { enum: values }) }
  const known = leaves.get(pattern ?? is)
  if (known !== undefined) return known
  if (pattern === undefined) return { type: 'object', additionalProperties: {} }
  return { type: 'string', ...(pattern.source !== '^' && { pattern: pattern.source }) }
}

export const isOptional = (schema: Schema) => schema.or?.includes(undefined) ?? false
