import { openDatabase } from '../services/coordinator/src/store/openDatabase.ts'

/** Sends SQL directly, bypassing the store. */
export type Query = <Row = Record<string, unknown>>(text: string, values?: readonly unknown[]) => Promise<Row[]>

/** Filling the database takes longer than the service's statement timeout. */
const LONG_TIMEOUTS = 'statement_timeout=0&query_timeout=900000'

export async function openQuery(databaseUrl: string): Promise<{ query: Query; close(): Promise<void> }> {
  const { bossDatabase, close } = await openDatabase({ databaseUrl: `${databaseUrl}?${LONG_TIMEOUTS}` })
  return {
    async query(text, values = []) {
      const { rows } = await bossDatabase.executeSql(text, [...values])
      return rows
    },
    close,
  }
}

/** Creates another database on the same server, empty or as a copy. PostgreSQL can't copy a database that has connections. */
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
