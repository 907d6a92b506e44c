import { isPlainObject } from '@countersign/protocol'
import { type TestChain, type TestRpcError, toRpcError } from './testChain.ts'

export type AnswerRpcDeps = {
  chain: TestChain
  /** Notes the call, and answers with the failure that the test has put in its way. */
  takeFailure(method: string): TestRpcError | undefined
}

/** JSON-RPC over HTTP, a call or a batch of them. */
export async function answerRpc(deps: AnswerRpcDeps, request: Request): Promise<Response> {
  if (request.method !== 'POST') return new Response(null, { status: 405, headers: { allow: 'POST' } })
  let body: unknown
  try {
    body = await request.json()
  } catch {
    return Response.json({ jsonrpc: '2.0', id: null, error: { code: -32700, message: 'parse error' } })
  }
  if (!Array.isArray(body) || body.length === 0) return Response.json(await answerCall(deps, body))
  const answers: unknown[] = []
  // In order: a batch may hold two transactions of one account.
  for (const call of body) answers.push(await answerCall(deps, call))
  return Response.json(answers)
}

async function answerCall({ chain, takeFailure }: AnswerRpcDeps, call: unknown): Promise<unknown> {
  if (!isPlainObject(call) || typeof call.method !== 'string') {
    return { jsonrpc: '2.0', id: null, error: { code: -32600, message: 'invalid request' } }
  }
  const { method, id = null, params } = call
  const failure = takeFailure(method)
  try {
    if (failure !== undefined) throw failure
    const result = await chain.call(method, Array.isArray(params) ? params : [])
    return { jsonrpc: '2.0', id, result }
  } catch (error) {
    return { jsonrpc: '2.0', id, error: toRpcError(error) }
  }
}
