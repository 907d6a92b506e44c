import { sql } from 'kysely'
import type { Store } from '../ports.ts'
import { guard } from './databaseError.ts'
import { createSampleClaims } from './entropySamples.ts'
import type { Jobs } from './jobs.ts'
import { createLogin, takeLogin } from './logins.ts'
import type { Database } from './openDatabase.ts'
import { findProof, findProofStates, listTransactions } from './proofs.ts'
import { createSession, deleteSession, findSession } from './sessions.ts'
import { createSharedRecords } from './sharedRecords.ts'
import { findSigners } from './signers.ts'
import { findSignedAt, insertSignings } from './signings.ts'
import { upsertUser } from './users.ts'
import { createVault, findVault, listVaults } from './vaults.ts'
import { createWallet, findWallet } from './wallets.ts'

/** The store on an open database. Closing it closes the jobs and the database too. */
export function createStore({ database, jobs }: { database: Database; jobs: Jobs }): Store {
  const { db } = database
  const sharedRecords = createSharedRecords(db)
  return {
    createLogin: guard((login) => createLogin(db, login)),
    takeLogin: guard((parameters) => takeLogin(db, parameters)),
    upsertUser: guard((user) => upsertUser(db, user)),
    createSession: guard((session) => createSession(db, session)),
    findSession: guard((parameters) => findSession(db, parameters)),
    deleteSession: guard((sidHash) => deleteSession(db, sidHash)),
    findWallet: guard((userId) => findWallet(db, userId)),
    createWallet: guard((parameters) => createWallet(db, parameters)),
    createVault: guard((parameters) => createVault({ db, jobs }, parameters)),
    findVault: guard((parameters) => findVault(db, parameters)),
    listVaults: guard((userId) => listVaults(db, userId)),
    claimSamples: guard(createSampleClaims(db)),
    findSigners: guard((parameters) => findSigners(db, parameters)),
    insertSignings: guard((parameters) => insertSignings({ db, jobs, sharedRecords }, parameters)),
    findSignedAt: guard((parameters) => findSignedAt(db, parameters)),
    findProof: guard((slug) => findProof(db, slug)),
    findProofStates: guard((slugs) => findProofStates(db, slugs)),
    listTransactions: guard((parameters) => listTransactions(db, parameters)),
    ping: guard(async () => {
      await sql`select 1`.execute(db)
    }),
    async close() {
      await jobs.stop()
      await database.close()
    },
  }
}
