import { generateKeyPairSync, hash, sign } from 'node:crypto'
import { callerHeaders, toCallerMessage } from '@countersign/protocol'

/** A coordinator's key, and the headers of a signed call. */
export type TestCoordinator = {
  key: string
  sign(call: { path: string; body: Uint8Array; timeMs: number }): Record<string, string>
}

export function createTestCoordinator(): TestCoordinator {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519')
  const key = publicKey.export({ type: 'spki', format: 'der' }).subarray(-32).toString('hex')
  return {
    key,
    sign: ({ path, body, timeMs }) => ({
      [callerHeaders.key]: key,
      [callerHeaders.time]: String(timeMs),
      [callerHeaders.signature]: sign(null, toMessage(path, body, timeMs), privateKey).toString('hex'),
      [callerHeaders.bodyHash]: hash('sha256', body, 'hex'),
    }),
  }
}

function toMessage(path: string, body: Uint8Array, timeMs: number) {
  return toCallerMessage({ path, timeMs, bodyHash: hash('sha256', body, 'buffer') })
}

/** POSTs a signed call to a running enclave over HTTP. */
export async function callEnclave(
  url: string,
  coordinator: TestCoordinator,
  path: string,
  request: unknown,
  timeMs = Date.now(),
): Promise<{ status: number; body: never }> {
  const body = new TextEncoder().encode(JSON.stringify(request))
  const headers = coordinator.sign({ path, body, timeMs })
  const response = await fetch(url + path, { method: 'POST', body, headers })
  return { status: response.status, body: (await response.json()) as never }
}
