import { errorCodes } from '@countersign/protocol/errorCodes'
import { z } from '@hono/zod-openapi'
import type { CoordinatorErrorCode } from '../errors.ts'
import { problemSchema } from './schemas.ts'

/* Answers as the OpenAPI document describes them. */

type Schema = typeof problemSchema | z.ZodType

export const json = (description: string, schema: Schema) => ({
  description,
  content: { 'application/json': { schema } },
})

/** Failures by status, each with its codes, and the failures that any call can meet. */
export function problemsOf(...own: CoordinatorErrorCode[]) {
  const byStatus = new Map<number, string[]>()
  for (const code of [...own, 'shutting_down', 'internal'] as const) {
    const { status } = errorCodes[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  const responses = [...byStatus].map(([status, codes]) => [
    status,
    { description: codes.join(', '), content: { 'application/problem+json': { schema: problemSchema } } },
  ])
  return Object.fromEntries(responses) as Record<number, ReturnType<typeof json>>
}

export const text = (description: string, type: string) => ({
  description,
  content: { [type]: { schema: z.string() } },
})

/** The same, as problems and as pages for callers that prefer HTML. */
export function pagesOf(...own: CoordinatorErrorCode[]) {
  const responses = Object.entries(problemsOf(...own)).map(([status, { description, content }]) => [
    status,
    { description, content: { ...content, 'text/html': { schema: z.string() } } },
  ])
  return Object.fromEntries(responses) as ReturnType<typeof problemsOf>
}
