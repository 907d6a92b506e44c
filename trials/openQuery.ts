import { openDatabase } from '../services/coordinator/src/store/openDatabase.ts'

/** Sends SQL of our own, past the store. */
export type Query = <Row = Record<string, unknown>>(text: string, values?: readonly unknown[]) => Promise<Row[]>

/** A fill takes longer than any statement of the service may. */
const PATIENCE = 'statement_timeout=0&query_timeout=900000'

export async function openQuery(databaseUrl: string): Promise<{ query: Query; close(): Promise<void> }> {
  const { bossDatabase, close } = await openDatabase({ databaseUrl: `${databaseUrl}?${PATIENCE}` })
  return {
    async query(text, values = []) {
      const { rows } = await bossDatabase.executeSql(text, [...values])
      return rows
    },
    close,
  }
}

/** Creates another database on the same server, empty or as a copy. To copy, no one may be connected to the original. */
export async function createDatabase(databaseUrl: string, template = 'template1'): Promise<string> {
  const name = `other_${Math.random().toString(36).slice(2)}`
  const admin = new URL(databaseUrl)
  admin.pathname = '/postgres'
  const { query, close } = await openQuery(admin.href)
  try {
    await query(`create database ${name} template ${template}`)
  } finally {
    await close()
  }
  const url = new URL(databaseUrl)
  url.pathname = `/${name}`
  return url.href
}
