import pg from 'pg'

/** One connection to PostgreSQL, for what is none of the service's. */
export type PostgresClient = {
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>
  hasEnded(): boolean
  end(): Promise<void>
}

/** Rejects with PostgreSQL's own error, `code` and all. */
export async function connectPostgres(url: string, { timeoutMs = 60_000 } = {}): Promise<PostgresClient> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs })
  let hasEnded = false
  // Who asks hears of it; unheard, it would end the process.
  client.on('error', () => {})
  client.on('end', () => {
    hasEnded = true
  })
  await client.connect()
  return {
    query: async <Row extends object>(text: string, values: readonly unknown[] = []) =>
      (await client.query<Row>(text, [...values])).rows,
    hasEnded: () => hasEnded,
    end: () => client.end().catch(() => {}),
  }
}

/** One statement, on a connection of its own. */
export async function askPostgres<Row extends object>(
  url: string,
  text: string,
  values: readonly unknown[] = [],
): Promise<Row[]> {
  const client = await connectPostgres(url)
  try {
    return await client.query<Row>(text, values)
  } finally {
    await client.end()
  }
}
