import { z } from 'zod'

type Json = Record<string, unknown>
type Described = { description: string; content?: Record<string, { schema: Json }> }
type Operation = { responses: Record<string, Described> }
type Document = { paths: Record<string, Record<string, Operation>>; components: { schemas: Json } }

export type AnswerCheck = {
  /** Throws when an answer is not as the document says. The response can still be read. */
  check(call: { method: string; path: string }, response: Response): Promise<void>
  /** Throws when a value is not of a resource of the document, by its name. */
  checkResource(name: string, value: unknown): void
  /** What has been checked: `get /proof/{slug} 404`. */
  seen: ReadonlySet<string>
}

/**
 * Reads `/openapi.json` as a stranger's client would, by its text alone: path, method, status and content type must be
 * described, JSON must satisfy its schema, and the code of a problem must be one that is named for its status.
 *
 * With `acceptUndescribed`, paths and methods that are in no document may be answered with a problem.
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
    // Preflights and answers without their bodies are HTTP's, not the document's.
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
    // Pages and blocks are only bytes here, and a stream of events may have no end.
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
  // A tile has a path of several segments, for which OpenAPI has no pattern.
  const toPattern = (name: string) => (name === '{path}' ? '.+' : '[^/]+')
  const isMatch = (pattern: string) =>
    new RegExp(`^${pattern.replaceAll('.', '\\.').replace(/\{[^}]+\}/g, toPattern)}$`).test(path)
  const pattern = path in paths ? path : Object.keys(paths).find(isMatch)
  const operation = pattern === undefined ? undefined : paths[pattern]?.[method.toLowerCase()]
  return pattern === undefined || operation === undefined ? undefined : { pattern, operation }
}
