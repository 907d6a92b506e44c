import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { contract, slug, toChain, toLog, toManifest, toProof } from '../../../packages/verify/src/issues.fake.ts'
import { findClosedUrl, serveBlocks, serveRpc, startLoopback } from '../../../packages/verify/src/loopback.fake.ts'
import { createFolder, honest } from './folder.fake.ts'
import { accept, blocks, collateralCid, run, runJson, statusOf, txHash } from './runCli.fake.ts'

/** The service: the proof under its slug, and a gateway. */
const serveApi =
  (proof: unknown, served: Readonly<Record<string, Uint8Array>> = blocks): RequestListener =>
  (request, response) => {
    if (request.url === `/proof/${slug}`) response.end(JSON.stringify(proof))
    else serveBlocks(served)(request, response)
  }

describe('a receipt by its proof', () => {
  test('URL: an origin without a configuration is the service, and its gateway has the blocks', async () => {
    const { url, requests } = await startLoopback(serveApi(toProof(honest)))
    expect((await run(`${url}/proof/${slug}`, ...accept)).exitCode).toBe(7)
    expect(requests).toEqual([
      'GET /config.json',
      `GET /proof/${slug}`,
      `GET /ipfs/${honest.cid}?format=raw`,
      `GET /ipfs/${collateralCid}?format=raw`,
    ])
  })

  test('URL of a web app: its configuration says where the service is, and nothing else of it is used', async () => {
    const service = await startLoopback(serveApi(toProof(honest)))
    const unused = await startLoopback((_, response) => response.writeHead(404).end())
    const app = await startLoopback((request, response) => {
      const config = { apiBaseUrl: service.url, ipfsGatewayUrl: unused.url, attestations: { rpcUrl: unused.url } }
      if (request.url === '/config.json') response.end(JSON.stringify(config))
      else response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>')
    })
    expect((await run(`${app.url}/proof/${slug}`, ...accept)).exitCode).toBe(7)
    expect([app.requests, unused.requests]).toEqual([['GET /config.json'], []])
    expect(service.requests[0]).toBe(`GET /proof/${slug}`)
  })

  test('URL of a web page that names no service: the error says which option does', async () => {
    const { url } = await startLoopback((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>'),
    )
    const { exitCode, error } = await runJson(`${url}/proof/${slug}`)
    expect({ exitCode, code: error.code }).toEqual({ exitCode: 5, code: 'fetch_failed' })
    expect(error.message).toContain(
      'a web page instead of data (if it is at another address, name the service with --api)',
    )
  })

  test('URL of a web app: --api says where the service is', async () => {
    const { url } = await startLoopback(serveApi(toProof(honest)))
    expect((await run(`https://app.invalid/proof/${slug}`, '--api', url, ...accept)).exitCode).toBe(7)
  })

  test('slug, with --api', async () => {
    const { url } = await startLoopback(serveApi(toProof(honest)))
    expect((await run(slug, '--api', url, ...accept)).exitCode).toBe(7)
  })

  test('slug alone is bad input', async () => {
    expect(await runJson(slug)).toMatchObject({ exitCode: 4, error: { code: 'invalid_arguments' } })
  })

  test('gateways are asked in order: the reader’s, the one that the proof names, the service’s own', async () => {
    const own = await startLoopback(serveBlocks({}))
    const named = await startLoopback(serveBlocks({}))
    const api = await startLoopback(serveApi(toProof(honest, { ipfsUrl: `${named.url}/ipfs/${honest.cid}` })))
    expect((await run(slug, '--api', api.url, '--ipfs', own.url, ...accept)).exitCode).toBe(7)
    expect([own, named, api].map(({ requests }) => requests.length)).toEqual([2, 2, 3])
  })

  test.each<[string, unknown]>([
    ['the receipt itself', honest.receipt],
    ['another receipt', { ...honest.receipt, issuedAt: '2026-03-01T12:00:01.000Z' }],
    ['no receipt', { version: 1 }],
    ['nothing', null],
  ])('where no gateway has it, the object in the proof is not read: %s', async (_, receipt) => {
    const { url, host } = await startLoopback(serveApi(toProof(honest, { receipt }), {}))
    const { exitCode, error } = await runJson(slug, '--api', url, ...accept)
    expect(exitCode).toBe(5)
    expect(error).toEqual({ code: 'fetch_failed', message: expect.stringContaining(`${host} answers 404`) })
  })

  test.each([
    ['pending_pin', 'try again'],
    ['pin_failed', 'gave up'],
  ])('that is not pinned (%s) is told plainly', async (status, words) => {
    const { url } = await startLoopback(serveApi(toProof(honest, { status, ipfsCid: null, receipt: null })))
    const { exitCode, stderr } = await run(slug, '--api', url)
    expect(exitCode).toBe(5)
    expect(stderr).toContain(words)
    expect(stderr).toContain('[proof_not_pinned]')
  })

  test.each<[string, unknown]>([
    ['of another slug', toProof(honest, { slug: 'A'.repeat(22) })],
    ['without a status', toProof(honest, { status: 'fine' })],
    ['with a CID of another kind', toProof(honest, { ipfsCid: 'QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnHFaP' })],
    ['with a malformed hash', toProof(honest, { txHash: '0x' })],
    ['that is a list', []],
    ['that is null', null],
  ])('a proof %s cannot be used', async (_, proof) => {
    const { url } = await startLoopback(serveApi(proof))
    expect(await runJson(slug, '--api', url)).toMatchObject({ exitCode: 5, error: { code: 'fetch_failed' } })
  })

  test('a proof page that shows one transaction and links the receipt of another fails', async () => {
    const { url } = await startLoopback(serveApi(toProof(honest, { txHash: `0x${'00'.repeat(32)}` })))
    const { exitCode, verdict, steps } = await runJson(slug, '--api', url, ...accept)
    expect({ exitCode, verdict, subject: statusOf(steps, 'subject') }).toEqual({
      exitCode: 1,
      verdict: 'failed',
      subject: 'fail',
    })
  })

  test('an unknown slug and a service that is down are no verdict', async () => {
    const { url } = await startLoopback((_, response) => response.writeHead(404).end())
    expect(await runJson(slug, '--api', url)).toMatchObject({ exitCode: 8, error: { code: 'proof_not_found' } })
    expect(await runJson(slug, '--api', await findClosedUrl())).toMatchObject({ exitCode: 5 })
  })
})

describe('a receipt by its CID', () => {
  test('from a gateway; the bytes are held against it', async () => {
    const { url } = await startLoopback(serveBlocks(blocks))
    const { exitCode, cid, steps } = await runJson(honest.cid, '--ipfs', url, ...accept)
    expect({ exitCode, cid, step: statusOf(steps, 'cid') }).toEqual({ exitCode: 7, cid: honest.cid, step: 'pass' })
  })

  test('without a gateway is bad input: no public one is asked', async () => {
    expect(await runJson(honest.cid)).toMatchObject({
      exitCode: 4,
      error: { code: 'invalid_arguments', message: expect.stringContaining('(--ipfs or --api)') },
    })
  })

  test('other bytes from every gateway: who sent what', async () => {
    const { url, host } = await startLoopback(serveBlocks({ [honest.cid]: honest.collateral }))
    const { exitCode, stderr } = await run(honest.cid, '--ipfs', url, ...accept)
    expect(exitCode).toBe(5)
    expect(stderr).toContain(`${host} sent ${honest.collateral.length} other bytes, with the CID ${collateralCid}`)
  })

  test('of a block that is no receipt is bad input', async () => {
    const { url } = await startLoopback(serveBlocks(blocks))
    expect(await runJson(collateralCid, '--ipfs', url)).toMatchObject({
      exitCode: 4,
      verdict: 'failed',
      steps: [
        { id: 'format', status: 'fail', code: 'receipt_version_unsupported' },
        { id: 'cid', status: 'pass' },
      ],
    })
    expect((await run(collateralCid, '--ipfs', url)).stdout).toContain('A newer receipt needs a newer verifier')
  })

  test('collateral that no gateway has leaves the verdict open', async () => {
    const { url, host } = await startLoopback(serveBlocks({ [honest.cid]: honest.bytes }))
    const { exitCode, stdout, stderr } = await run(honest.cid, '--ipfs', url, ...accept)
    expect(exitCode).toBe(5)
    expect(stdout).toContain('Not verified: evidence is missing')
    expect(stdout).toContain(collateralCid)
    expect(stderr).toBe(`countersign-verifier: could not fetch: ${host} answers 404\n`)
  })
})

describe('a receipt by its transaction', () => {
  const chainFlags = async (changes?: Readonly<Record<string, unknown>>) => {
    const { url } = await startLoopback(serveRpc(toChain(honest, changes)))
    return ['--rpc', url, '--contract', contract]
  }

  test('the event names the CID, and the chain is part of the verdict', async () => {
    const { url } = await startLoopback(serveBlocks(blocks))
    const { exitCode, steps } = await runJson(txHash, '--ipfs', url, ...(await chainFlags()), ...accept)
    expect(exitCode).toBe(0)
    expect(['event', 'transaction', 'time', 'time-bound', 'subject'].map((id) => statusOf(steps, id))).toEqual(
      Array(5).fill('pass'),
    )
  })

  test('without a chain is bad input, even where a service is named', async () => {
    const { exitCode, error } = await runJson(txHash, '--api', 'http://127.0.0.1:1')
    expect(exitCode).toBe(4)
    expect(error.message).toContain('needs --rpc and --contract')
  })

  test('an event under this hash that points to the receipt of another fails', async () => {
    // Only a dishonest publisher can do this: both transactions point to the same, genuine receipt.
    const asked = `0x${'11'.repeat(32)}`
    const [topic, wallet] = toLog(honest).topics
    const answer = ({ topics }: { topics: (string | null)[] }) => [
      topics[2] === asked ? toLog(honest, { topics: [topic, wallet, asked] }) : toLog(honest),
    ]
    const { url } = await startLoopback(serveBlocks(blocks))
    const flags = await chainFlags({ eth_getLogs: answer })
    const { exitCode, steps } = await runJson(asked, '--ipfs', url, ...flags, ...accept)
    expect(exitCode).toBe(1)
    expect(steps.filter(({ status }: { status: string }) => status === 'fail')).toMatchObject([{ id: 'subject' }])
  })

  test('no event is no verdict', async () => {
    const flags = await chainFlags({ eth_getLogs: [] })
    expect(await runJson(txHash, '--ipfs', 'http://127.0.0.1:1', ...flags)).toMatchObject({
      exitCode: 5,
      error: { code: 'event_not_found' },
    })
  })

  test('an event that names something else than a receipt is no verdict', async () => {
    const flags = await chainFlags({ eth_getLogs: [toLog({ ...honest, cid: 'x'.repeat(59) })] })
    expect(await runJson(txHash, '--ipfs', 'http://127.0.0.1:1', ...flags)).toMatchObject({ exitCode: 5 })
  })
})

describe('a chain beside a receipt file', () => {
  const receiptFolder = () => createFolder({ 'receipt.json': honest.bytes, 'collateral.json': honest.collateral })

  test('the manifest names the contract of the node’s chain, and where to search from', async () => {
    const folder = await createFolder({
      'receipt.json': honest.bytes,
      'collateral.json': honest.collateral,
      'manifest.json': JSON.stringify(toManifest(honest)),
    })
    let fromBlock: unknown
    const eth_getLogs = (filter: { fromBlock: string }) => {
      fromBlock = filter.fromBlock
      return [toLog(honest)]
    }
    const { url } = await startLoopback(serveRpc(toChain(honest, { eth_getLogs })))
    const manifest = ['--manifest', join(folder, 'manifest.json'), '--allow-mock']
    const { exitCode, steps } = await runJson(join(folder, 'receipt.json'), '--rpc', url, ...manifest)
    expect({ exitCode, event: statusOf(steps, 'event'), fromBlock }).toEqual({
      exitCode: 0,
      event: 'pass',
      fromBlock: '0x7',
    })
    const elsewhere = await startLoopback(serveRpc(toChain(honest, { eth_chainId: '0x1' })))
    expect(await runJson(join(folder, 'receipt.json'), '--rpc', elsewhere.url, ...manifest)).toMatchObject({
      exitCode: 5,
      verdict: 'incomplete',
    })
  })

  test('a node without a contract to ask is bad input', async () => {
    const path = join(await receiptFolder(), 'receipt.json')
    expect(await runJson(path, '--rpc', 'http://127.0.0.1:1')).toMatchObject({ exitCode: 4 })
  })

  test('a node that is down leaves the verdict open, a chain that points elsewhere fails', async () => {
    const path = join(await receiptFolder(), 'receipt.json')
    const down = ['--rpc', await findClosedUrl(), '--contract', contract]
    expect(await runJson(path, ...accept, ...down)).toMatchObject({ exitCode: 5, verdict: 'incomplete' })
    const { url } = await startLoopback(serveRpc(toChain(honest, { eth_getLogs: [] })))
    expect(await runJson(path, ...accept, '--rpc', url, '--contract', contract)).toMatchObject({ exitCode: 1 })
  })
})
