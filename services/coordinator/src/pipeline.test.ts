import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { vendorRoots } from '@countersign/attestation'
import { simulatedRoots } from '@countersign/attestation/simulator'
import type { ProofPayload } from '@countersign/protocol'
import { checkReceipt, parseReceipt, toCid } from '@countersign/receipt'
import { startPostgres, type TestPostgres } from '@countersign/testing'
import { createTx, createUser, readEvents, type TestUser } from '@countersign/testing/stack'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startContract } from '../../../contracts/startContract.ts'
import { type Backend, startBackend } from '../test/backend.ts'

type Chain = Awaited<ReturnType<typeof startContract>>['chain']

describe('from signature to public proof', () => {
  let chain: Chain
  let contract: `0x${string}`
  let backend: Backend
  // A separate server: other tests on a shared one would overwrite the write-ahead log that is searched below.
  let postgres: TestPostgres
  const users: TestUser[] = []
  async function signIn(name: string): Promise<TestUser> {
    const user = createUser(backend)
    users.push(user)
    await user.signIn(name)
    return user
  }
  beforeAll(async () => {
    const started = await startContract()
    chain = started.chain
    contract = started.address
    postgres = await startPostgres({ isDurable: false })
    backend = await startBackend({ env: started.env, databaseUrl: await postgres.createDatabase() })
  }, 120_000)
  afterAll(async () => {
    await backend?.stop()
    await postgres?.stop()
    await chain?.stop()
  })

  const getProof = async (slug: string) => (await (await fetch(`${backend.url}/proof/${slug}`)).json()) as ProofPayload
  const untilComplete = async (slug: string) => {
    for (;;) {
      const proof = await getProof(slug)
      if (proof.status === 'complete') return proof
      if (proof.status === 'pin_failed' || proof.status === 'onchain_failed') throw new Error(proof.status)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  }

  test('a signature becomes a receipt on IPFS and an event on the chain that a third party can verify', async () => {
    const user = await signIn('alice')
    const { slug } = (await (await user.sign(createTx(0))).json()) as { slug: string }
    const proof = await untilComplete(slug)
    expect(proof).toMatchObject({ kmsQuoteVerified: true, ipfsCid: expect.any(String), receipt: expect.any(Object) })

    const block = async (cid: string) => {
      const response = await fetch(`${backend.url}/ipfs/${cid}?format=raw`)
      expect(response.status).toBe(200)
      const bytes = new Uint8Array(await response.arrayBuffer())
      expect(toCid(bytes)).toBe(cid)
      return bytes
    }
    const bytes = await block(proof.ipfsCid ?? '')
    const receipt = parseReceipt(bytes)
    expect(receipt).toEqual(proof.receipt)
    const collateral = await block(receipt.signer.collateral)
    const { steps, verdict } = await checkReceipt(bytes, collateral, {
      roots: [...vendorRoots, ...simulatedRoots()],
      mockEntropyKeys: [backend.satellite.publicKey],
      cid: proof.ipfsCid ?? '',
    })
    expect(steps.filter(({ status }) => status === 'fail')).toEqual([])
    expect(verdict).toBe('mock')
    const events = await readEvents({ url: chain.url, contract })
    expect(events.filter(({ txHash }) => txHash === proof.txHash)).toEqual([
      { wallet: proof.walletAddress, txHash: proof.txHash, ipfsCid: proof.ipfsCid },
    ])
  })

  test('after the coordinator is killed with 20 pending proofs, all complete with one event each', async () => {
    const user = await signIn('bob')
    const answers = await Promise.all(Array.from({ length: 20 }, (_, nonce) => user.sign(createTx(nonce))))
    const slugs = await Promise.all(answers.map(async (answer) => ((await answer.json()) as { slug: string }).slug))
    await backend.stopCoordinator('SIGKILL')
    await backend.startCoordinator()
    const proofs = await Promise.all(slugs.map(untilComplete))
    const events = await readEvents({ url: chain.url, contract })
    for (const { txHash } of proofs) expect(events.filter((event) => event.txHash === txHash)).toHaveLength(1)
  })

  test('no session secret, code or key is in the database files, even of an ended session', async () => {
    const visitor = await signIn('carol')
    expect((await visitor.post('/auth/logout')).status).toBe(200)
    const secrets = [...users.flatMap((user) => [...user.secrets]), ...(await backend.readKeys())]
    // A login secret, a session secret and a code each, and the root secret with at least one key.
    expect(secrets.length).toBeGreaterThanOrEqual(11)
    // Only values that are entirely hex are searched for as bytes. A few letters at the start of a code could match by chance.
    const toForms = (secret: string) =>
      /^[0-9a-f]{64}$/.test(secret) ? [secret, Buffer.from(secret, 'hex')] : [secret]
    const forms = secrets.flatMap(toForms)
    let filesWithUser = 0
    for (const path of await listDatabaseFiles()) {
      // The server deletes files of its write-ahead log meanwhile.
      const file = await readFile(path).catch(() => Buffer.alloc(0))
      if (file.includes('alice@example.com')) filesWithUser += 1
      for (const form of forms) expect(file.includes(form)).toBe(false)
    }
    // In the table and in the write-ahead log.
    expect(filesWithUser).toBeGreaterThanOrEqual(2)
  })

  async function listDatabaseFiles(): Promise<string[]> {
    const [row] = await backend.withDatabase(async (query) => {
      await query('checkpoint')
      const oid = 'select oid from pg_database where datname = current_database()'
      return query(`select current_setting('data_directory') as folder, (${oid}) as oid`)
    })
    const folders = [`base/${row?.oid}`, 'pg_wal'].map((name) => join(String(row?.folder), name))
    const lists = folders.map(async (folder) => (await readdir(folder)).map((name) => join(folder, name)))
    return (await Promise.all(lists)).flat()
  }
})
