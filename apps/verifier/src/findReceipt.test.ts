import type { RequestListener } from 'node:http'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { slug, toChain, toLog, toManifest, toProof } from '../../../packages/verify/test/issues.ts'
import { serveBlocks, serveRpc, startLoopback } from '../../../packages/verify/test/loopback.ts'
import { createFolder, honest } from '../test/folder.ts'
import { accept, blocks, collateralCid, run, runJson, statusOf } from '../test/runCli.ts'

/** The service: a proof by its slug, and a gateway. */
const serveApi =
  (proof: unknown, served: Readonly<Record<string, Uint8Array>> = blocks): RequestListener =>
  (request, response) => {
    if (request.url === `/proof/${slug}`) response.end(JSON.stringify(proof))
    else serveBlocks(served)(request, response)
  }

describe('a receipt by its proof', () => {
  test('finds the service of a web app’s URL in its configuration, and uses nothing else of it', async () => {
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

  test('names the right option for the URL of a page without a service', async () => {
    const { url } = await startLoopback((_, response) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html>'),
    )
    const { exitCode, error } = await runJson(`${url}/proof/${slug}`)
    expect({ exitCode, code: error.code }).toEqual({ exitCode: 5, code: 'fetch_failed' })
    expect(error.message).toContain(
      'a web page instead of data (if it has another address, name the service with --api)',
    )
  })

  test('uses --api for the URL of a web app', async () => {
    const { url } = await startLoopback(serveApi(toProof(honest)))
    expect((await run(`https://app.invalid/proof/${slug}`, '--api', url, ...accept)).exitCode).toBe(7)
  })

  test('rejects a slug without --api', async () => {
    expect(await runJson(slug)).toMatchObject({ exitCode: 4, error: { code: 'invalid_arguments' } })
  })

  test('asks the reader’s gateways first, then the proof’s, then the service’s', async () => {
    const own = await startLoopback(serveBlocks({}))
    const named = await startLoopback(serveBlocks({}))
    const api = await startLoopback(serveApi(toProof(honest, { ipfsUrl: `${named.url}/ipfs/${honest.cid}` })))
    expect((await run(slug, '--api', api.url, '--ipfs', own.url, ...accept)).exitCode).toBe(7)
    expect([own, named, api].map(({ requests }) => requests.length)).toEqual([2, 2, 3])
  })
})

describe('a receipt by its CID', () => {
  test('is bad input without a gateway, because no public one is asked', async () => {
    expect(await runJson(honest.cid)).toMatchObject({
      exitCode: 4,
      error: { code: 'invalid_arguments', message: expect.stringContaining('(--ipfs or --api)') },
    })
  })

  test('is incomplete if no gateway has the collateral', async () => {
    const { url, host } = await startLoopback(serveBlocks({ [honest.cid]: honest.bytes }))
    const { exitCode, stdout, stderr } = await run(honest.cid, '--ipfs', url, ...accept)
    expect(exitCode).toBe(5)
    expect(stdout).toContain('Not verified: evidence is missing')
    expect(stdout).toContain(collateralCid)
    expect(stderr).toBe(`countersign-verifier: could not fetch: ${host} returned 404\n`)
  })
})

describe('a chain with a receipt file', () => {
  test('uses the manifest’s contract and its first block', async () => {
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
})
