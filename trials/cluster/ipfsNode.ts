import { createServer, type IncomingMessage } from 'node:http'
import { readBounded } from '@countersign/protocol'
import { toCid } from '@countersign/receipt'
import { createHeliaPinner } from '../../services/coordinator/src/ipfs/helia.ts'

// One IPFS node for several workers: an embedded node behind the calls of Kubo's RPC that workers use (`block/put`, `pin/ls`,
// `block/get`), and a gateway for everyone else. `PORT` and `DATA_DIR` say where.

const node = await createHeliaPinner({ dataDir: process.env.DATA_DIR ?? '' })
const signal = new AbortController().signal
/** A block, and what a form needs around it. */
const MAX_FORM_BYTES = 4_194_304

type Answer = { status: number; body: string | Uint8Array; type?: string }

async function answer(request: IncomingMessage): Promise<Answer> {
  const url = new URL(request.url ?? '/', 'http://127.0.0.1')
  const cid = url.searchParams.get('arg') ?? ''
  if (request.method === 'GET' && url.pathname.startsWith('/ipfs/')) {
    const block = await node.getBlock(url.pathname.slice('/ipfs/'.length))
    if (block === undefined) return { status: 404, body: 'not found' }
    return { status: 200, body: block, type: 'application/vnd.ipld.raw' }
  }
  if (request.method !== 'POST') return { status: 405, body: '' }
  switch (url.pathname) {
    case '/api/v0/block/put': {
      const bytes = await readFile(request)
      const key = toCid(bytes)
      await node.pinner.pin({ cid: key, bytes }, { signal })
      return { status: 200, body: JSON.stringify({ Key: key, Size: bytes.length }), type: 'application/json' }
    }
    case '/api/v0/pin/ls': {
      const isHeld = (await node.getBlock(cid)) !== undefined
      if (!isHeld) return { status: 500, body: JSON.stringify({ Message: `path '${cid}' is not pinned` }) }
      return { status: 200, body: JSON.stringify({ Keys: { [cid]: { Type: 'recursive' } } }), type: 'application/json' }
    }
    case '/api/v0/block/get': {
      const block = await node.getBlock(cid)
      if (block === undefined) return { status: 500, body: JSON.stringify({ Message: `could not find ${cid}` }) }
      return { status: 200, body: block }
    }
    default:
      return { status: 404, body: 'not found' }
  }
}

/** The one file of a form. */
async function readFile(request: IncomingMessage): Promise<Uint8Array<ArrayBuffer>> {
  const bytes = await readBounded(request, MAX_FORM_BYTES)
  const headers = { 'content-type': request.headers['content-type'] ?? '' }
  const file = (await new Response(bytes, { headers }).formData()).get('file')
  if (!(file instanceof Blob)) throw new Error('no file')
  return new Uint8Array(await file.arrayBuffer())
}

const server = createServer((request, response) => {
  answer(request)
    .catch((error: Error): Answer => ({ status: 500, body: JSON.stringify({ Message: error.message }) }))
    .then(({ status, body, type = 'text/plain' }) => {
      response.writeHead(status, { 'content-type': type }).end(body)
    })
})
server.listen(Number(process.env.PORT), '127.0.0.1', () => {
  process.stdout.write(`${JSON.stringify({ msg: 'Started the IPFS node' })}\n`)
})
process.once('SIGTERM', () => {
  server.close(() => void node.stop())
  server.closeAllConnections()
})
