import { hash, randomUUID } from 'node:crypto'
import {
  fromHex,
  hashEntropy,
  type SignedSummary,
  toEventHash,
  toHex,
  toSignedDigest,
  toSignedSummary,
} from '@countersign/protocol'
import { CoordinatorError, vaultKeyChanged } from '../../src/errors.ts'
import type { Login } from '../../src/store/logins.ts'
import type { Store } from '../../src/store/openStore.ts'
import type { Proof } from '../../src/store/proofs.ts'
import type { Session } from '../../src/store/sessions.ts'
import type { Signing, StoredSigning } from '../../src/store/signings.ts'
import type { User } from '../../src/store/users.ts'
import type { Vault } from '../../src/store/vaults.ts'
import type { Wallet } from '../../src/store/wallets.ts'

const SEEN_EVERY_MS = 60_000

/** A store in memory for tests. It behaves like the real one and exposes its rows. */
export function createMemoryStore() {
  const rows = {
    logins: new Map<string, Login>(),
    users: new Map<string, User>(),
    sessions: new Map<string, Session>(),
    wallets: new Map<string, Wallet>(),
    /** By address. */
    vaults: new Map<string, Vault>(),
    samples: new Set<string>(),
    signed: new Map<string, StoredSigning>(),
    proofs: new Map<string, Proof>(),
    /** By slug. */
    summaries: new Map<string, SignedSummary>(),
  }
  const fake = { rows, isDown: false, isPinning: true, writes: 0, proofReads: 0, polls: [] as string[][] }

  function read() {
    if (fake.isDown) throw new CoordinatorError('database_unavailable', 'the database cannot be reached')
  }
  function write() {
    read()
    fake.writes += 1
  }

  function isOfUser(userId: string): (walletId: string) => boolean {
    const vaults = [...rows.vaults.values()].filter((vault) => vault.userId === userId)
    const ids = new Set([rows.wallets.get(userId)?.id, ...vaults.map(({ id }) => id)])
    return (walletId) => ids.has(walletId)
  }

  const store: Store = {
    async createLogin(login) {
      write()
      if (rows.logins.has(login.id)) throw new CoordinatorError('internal', 'a login of this id is there')
      rows.logins.set(login.id, login)
    },
    async consumeLogin({ id, stateHash, now }) {
      write()
      const login = rows.logins.get(id)
      if (login === undefined || login.stateHash !== stateHash) return undefined
      rows.logins.delete(id)
      return now < login.expiresAt ? login : undefined
    },

    async upsertUser({ now: _, ...user }) {
      write()
      const key = JSON.stringify([user.issuer, user.subject])
      const earlier = rows.users.get(key)
      if (earlier !== undefined && earlier.kmsKeyId !== user.kmsKeyId) {
        throw new CoordinatorError('key_binding_mismatch', 'the key does not belong to this user')
      }
      const latest = { ...user, id: earlier?.id ?? randomUUID() }
      rows.users.set(key, latest)
      return latest
    },
    async createSession(session) {
      write()
      rows.sessions.set(session.sidHash, session)
    },
    async findSession({ sidHash, now, idleMs }) {
      read()
      const session = rows.sessions.get(sidHash)
      const user = [...rows.users.values()].find(({ id }) => id === session?.userId)
      if (session === undefined || user === undefined) return undefined
      if (now >= session.expiresAt || now - session.lastSeenAt >= idleMs) return 'expired'
      if (session.keyId !== user.kmsKeyId) {
        throw new CoordinatorError('key_binding_mismatch', 'session and user have different keys')
      }
      if (now - session.lastSeenAt >= SEEN_EVERY_MS) rows.sessions.set(sidHash, { ...session, lastSeenAt: now })
      return { session, user }
    },
    async listSessions({ userId, now, idleMs }) {
      read()
      const isOpen = (one: Session) => one.userId === userId && one.expiresAt > now && one.lastSeenAt > now - idleMs
      return [...rows.sessions.values()].filter(isOpen).toReversed()
    },
    async deleteSessions(userId) {
      write()
      for (const one of rows.sessions.values()) if (one.userId === userId) rows.sessions.delete(one.sidHash)
    },
    async deleteSession(sidHash) {
      write()
      return rows.sessions.delete(sidHash)
    },

    async findWallet(userId) {
      read()
      return rows.wallets.get(userId)
    },
    async createWallet({ userId, address, kmsKeyId, witness, now }) {
      write()
      const earlier = rows.wallets.get(userId)
      if (earlier !== undefined) return earlier
      const provenance = {
        entropyHash: toHex(hashEntropy(fromHex(witness.valueHex))),
        entropySig: witness.signatureHex,
        satelliteSource: witness.source,
      }
      const wallet = { id: randomUUID(), userId, address, kmsKeyId, createdAt: now, provenance }
      rows.wallets.set(userId, wallet)
      return wallet
    },

    async createVault({ limit, now, ...vault }) {
      write()
      const { userId, policy } = vault
      const earlier = await store.findVault({ userId, policyHash: policy.hash })
      const count = [...rows.vaults.values()].filter((one) => one.userId === userId).length
      if (earlier === undefined && limit !== null && count >= limit) {
        throw new CoordinatorError('too_many_vaults', 'the user has too many vaults')
      }
      if (earlier !== undefined && (earlier.address !== vault.address || earlier.kmsKeyId !== vault.kmsKeyId)) {
        throw vaultKeyChanged()
      }
      const created = earlier ?? { ...vault, id: randomUUID(), createdAt: now, isPinned: false }
      rows.vaults.set(vault.address, { ...created, isPinned: created.isPinned || fake.isPinning })
      return created
    },
    async findVault({ userId, policyHash }) {
      read()
      return [...rows.vaults.values()].find((vault) => vault.userId === userId && vault.policy.hash === policyHash)
    },
    async findVaultAt(address) {
      read()
      const vault = rows.vaults.get(address)
      const user = [...rows.users.values()].find(({ id }) => id === vault?.userId)
      if (vault === undefined || user === undefined || !vault.isPinned) return undefined
      return { ...vault, owner: hash('sha256', `${user.issuer}\0${user.subject}`, 'hex') }
    },
    async listVaults(userId) {
      read()
      return [...rows.vaults.values()].filter((vault) => vault.userId === userId && vault.isPinned)
    },

    async claimSamples(witnesses) {
      write()
      return witnesses.filter(({ valueHex }) => {
        const isNew = !rows.samples.has(valueHex)
        rows.samples.add(valueHex)
        return isNew
      })
    },

    async findSigners({ queries, now, idleMs }) {
      const found = await Promise.all(queries.map(({ sidHash }) => store.findSession({ sidHash, now, idleMs })))
      return found.map((signedIn, index) => {
        if (signedIn === undefined || signedIn === 'expired') return signedIn
        const { grant, clientKey, owner, keyId, address, userId } = signedIn.session
        const isBound = clientKey !== undefined
        const wallet = rows.wallets.get(userId)
        if (wallet !== undefined && (wallet.kmsKeyId !== keyId || wallet.address !== address)) {
          return 'key_binding_mismatch'
        }
        const query = queries[index]
        const findSigned = (walletId: string | undefined) => {
          const { signature = null, slug } = rows.signed.get(`${walletId}/${query?.digest}`) ?? {}
          return slug ? { signature, slug } : undefined
        }
        const signer = {
          userId,
          grant,
          isBound,
          owner,
          keyId,
          address,
          walletId: wallet?.id,
          signed: findSigned(wallet?.id),
        }
        if (query?.wallet === undefined || (wallet && query.wallet === wallet.address)) return signer
        const vault = rows.vaults.get(query.wallet)
        if (vault?.userId !== userId || !vault.isPinned) return 'vault_not_found'
        const { id, kmsKeyId, policy } = vault
        const own = { keyId: kmsKeyId, address: vault.address, walletId: id, policy, signed: findSigned(id) }
        return { ...signer, ...own }
      })
    },
    async insertSignings({ signings, now }) {
      write()
      return signings.flatMap((signing) => {
        const { slug, walletId } = signing
        const { kind, digest, signature, txHash, chainId, summary } = toPublicParts(signing)
        const key = `${walletId}/${digest ?? txHash}`
        const earlier = rows.signed.get(key)
        if (earlier !== undefined) return digest === null ? [] : earlier
        const signed = { walletId, digest, signature, slug }
        rows.signed.set(key, signed)
        rows.proofs.set(slug, {
          slug,
          kind,
          txHash,
          chainId,
          walletAddress: signing.statement.address,
          status: 'pending_pin',
          ipfsCid: null,
          onchainTxHash: null,
          onchainBlockNumber: null,
          kmsQuoteVerified: true,
          receipt: null,
          createdAt: now,
          isFinal: false,
        })
        rows.summaries.set(slug, summary)
        return signed
      })
    },

    async findSigned(pairs) {
      read()
      return pairs.flatMap(({ walletId, digest }) => rows.signed.get(`${walletId}/${digest}`) ?? [])
    },
    async findSignedAt({ userId, position }) {
      read()
      const isOwn = isOfUser(userId)
      const signed = [...rows.signed.values()].filter((item) => isOwn(item.walletId))
      return rows.proofs.get(signed.at(-position)?.slug ?? '')?.createdAt
    },
    async findProof(slug) {
      read()
      fake.proofReads += 1
      return rows.proofs.get(slug)
    },
    async findProofStates(slugs) {
      fake.polls.push([...slugs])
      read()
      return slugs.flatMap((slug) => rows.proofs.get(slug) ?? [])
    },
    async listTransactions({ userId, limit, before }) {
      read()
      const isOwn = isOfUser(userId)
      return [...rows.signed.values()]
        .map((signed, index) => ({ ...signed, id: index + 1 }))
        .filter((signed) => isOwn(signed.walletId) && signed.id < Number(before ?? Number.POSITIVE_INFINITY))
        .toReversed()
        .slice(0, limit)
        .flatMap(({ id, slug, walletId }) => {
          const [proof, summary] = [rows.proofs.get(slug), rows.summaries.get(slug)]
          if (proof === undefined || summary === undefined) return []
          const { txHash, chainId, status, createdAt } = proof
          const vault = [...rows.vaults.values()].find((one) => one.id === walletId)
          const address = vault && { walletAddress: vault.address }
          return [{ id: String(id), txHash, chainId, slug, status, createdAt, ...address, ...summary }]
        })
    },

    async ping() {
      read()
    },
    async close() {},
  }
  return Object.assign(fake, store)
}

function toPublicParts(signing: Signing) {
  if (signing.version === 1) {
    const kind = 'transaction' as const
    return { kind, ...signing.statement, summary: toSignedSummary({ kind, subject: signing.txMetadata }) }
  }
  const { kind, subject } = signing.signed
  const digest = toSignedDigest(signing.signed)
  const shared = { kind, digest, txHash: toEventHash(signing.signed), summary: toSignedSummary(signing.signed) }
  if (kind === 'off-chain' || kind === 'address' || kind === 'revocation')
    return { ...shared, signature: null, chainId: 0 }
  return { ...shared, signature: subject.signature, chainId: subject.chainId }
}
