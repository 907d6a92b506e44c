import { existsSync } from 'node:fs'
import { extname, join } from 'node:path'
import { isSafeUrl } from '@countersign/protocol'
import { type Env, type Fault, type Mode, readSecret, readUrl } from '@countersign/service'

export type PinnerConfig =
  | { kind: 'helia'; listen: string | undefined }
  | { kind: 'kubo'; apiUrl: string; token: string | undefined }
  | { kind: 'pinata'; apiUrl: string | undefined; gatewayUrl: string; pinsUrl: string | undefined; token: string }

const PINATA_GATEWAY = 'https://gateway.pinata.cloud'

export type PinnerContext = {
  readFile(path: string): string
  mode: Mode
  /** False in images, which don't contain its code. */
  hasEmbeddedNode?(): boolean
}

const HELIA = join(import.meta.dirname, `helia${extname(import.meta.filename)}`)

export function readPinner(env: Env, context: PinnerContext, fault: Fault): PinnerConfig {
  const { readFile, mode, hasEmbeddedNode = () => existsSync(HELIA) } = context
  const kind = env.IPFS_PINNER || 'helia'
  const secret = readSecret(env, 'IPFS_API_TOKEN', readFile, fault)
  const token = secret || undefined
  if (env.IPFS_PINS_URL && kind !== 'pinata') fault('IPFS_PINS_URL', 'only for IPFS_PINNER=pinata')
  if (kind === 'helia') {
    if (!hasEmbeddedNode()) fault('IPFS_PINNER', 'images have no embedded IPFS node; expected kubo or pinata')
    return { kind, listen: env.IPFS_LISTEN || undefined }
  }
  if (kind === 'kubo') {
    const apiUrl = readUrl(env, 'IPFS_API_URL', 'http://127.0.0.1:5001', fault)
    if (mode !== 'development' && !isSafeUrl(apiUrl)) {
      fault('IPFS_API_URL', 'expected https, or http on loopback')
    }
    return { kind, apiUrl, token }
  }
  if (kind !== 'pinata') fault('IPFS_PINNER', 'expected helia, kubo or pinata')
  if (secret === '') fault('IPFS_API_TOKEN', 'missing')
  const apiUrl = env.IPFS_API_URL ? readUrl(env, 'IPFS_API_URL', '', fault) : undefined
  const gatewayUrl = readUrl(env, 'IPFS_GATEWAY_URL', PINATA_GATEWAY, fault)
  const pinsUrl = env.IPFS_PINS_URL ? readUrl(env, 'IPFS_PINS_URL', '', fault) : undefined
  if (pinsUrl !== undefined && !isSafeUrl(pinsUrl)) {
    fault('IPFS_PINS_URL', 'expected https, or http on loopback, because the token goes there too')
  }
  return { kind: 'pinata', apiUrl, gatewayUrl, pinsUrl, token: token ?? '' }
}
