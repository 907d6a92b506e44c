import { z } from 'zod'

type Json = Record<string, unknown>
type Described = { description: string; content?: Record<string, { schema: Json }> }
type Operation = { responses: Record<string, Described> }
type Document = { paths: Record<string, Record<string, Operation>>; components: { schemas: Json } }

export type AnswerCheck = {
  /** Throws if a response differs from the document. The response can still be read. */
  check(call: { method: string; path: string }, response: Response): Promise<void>
  /** Throws if a value doesn't match a named schema of the document. */
  checkResource(name: string, value: unknown): void
  /** The checked responses: `get /proof/{slug} 404`. */
  seen: ReadonlySet<string>
}

/**
 * Reads `/openapi.json` as text, like a third party's client. Path, method, status and content type must be described, JSON must match its
 * schema, and a problem's code must be listed for its status.
 *
 * With `acceptUndescribed`, paths and methods outside the document may return a problem.
 */
export function createAnswerCheck(text: string, { acceptUndescribed = false } = {}): AnswerCheck {
  const document = JSON.parse(text.replaceAll('#/components/schemas/', '#/$defs/')) as Document
  const schemas = new Map<string, z.ZodType>()
  const seen = new Set<string>()

  function toSchema(schema: Json): z.ZodType {
    const key = JSON.stringify(schema)
    const json = { ...schema, $defs: document.components.schemas } as Parameters<typeof z.fromJSONSchema>[0]
    const parsed = schemas.get(key) ?? z.fromJSONSchema(json)
    schemas.set(key, parsed)
    return parsed
  }

  function checkResource(name: string, value: unknown) {
    toSchema({ $ref: `#/$defs/${name}` }).parse(value)
  }

  async function check({ method, path }: { method: string; path: string }, response: Response): Promise<void> {
    // The document doesn't describe preflights and responses without bodies.
    if (method === 'HEAD' || method === 'OPTIONS') return
    const { status } = response
    const type = (response.headers.get('content-type') ?? '').replace(/;.*/, '')
    const fail = (reason: string): never => {
      const answer = `${status} ${type || 'without a type'}`
      throw new Error(`${method} ${path} answered ${answer}, which its description does not know: ${reason}`)
    }
    const found = findOperation(document, method, path)
    if (found === undefined) {
      if (!acceptUndescribed || type !== 'application/problem+json') return fail('no such call')
      return checkResource('Problem', await response.clone().json())
    }
    const described = found.operation.responses[status] ?? fail('no such status')
    seen.add(`${method.toLowerCase()} ${found.pattern} ${status}`)
    if (described.content === undefined) {
      if ((await response.clone().text()) !== '') fail('a body')
      return
    }
    const { schema } = described.content[type] ?? fail('no such content type')
    // Pages and blocks are only bytes here, and a stream of events may never end.
    if (!/[/+]json$/.test(type)) return
    const parsed = toSchema(schema).safeParse(await response.clone().json())
    if (!parsed.success) return fail(z.prettifyError(parsed.error))
    if (type !== 'application/problem+json') return
    const { code } = parsed.data as { code: string }
    if (!described.description.split(', ').includes(code)) fail(`no ${code} for this status`)
  }

  return { check, checkResource, seen }
}

function findOperation({ paths }: Document, method: string, path: string) {
  // A tile's path has several segments, which OpenAPI can't describe.
  const toPattern = (name: string) => (name === '{path}' ? '.+' : '[^/]+')
  const isMatch = (pattern: string) =>
    new RegExp(`^${pattern.replaceAll('.', '\\.').replace(/\{[^}]+\}/g, toPattern)}$`).test(path)
  const pattern = path in paths ? path : Object.keys(paths).find(isMatch)
  const operation = pattern === undefined ? undefined : paths[pattern]?.[method.toLowerCase()]
  return pattern === undefined || operation === undefined ? undefined : { pattern, operation }
}
