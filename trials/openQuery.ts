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
