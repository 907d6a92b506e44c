import pg from 'pg'

/** A direct PostgreSQL connection, independent of the service's code. */
export type PostgresClient = {
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>
  hasEnded(): boolean
  end(): Promise<void>
}

/** Rejects with PostgreSQL's error and its code. */
export async function connectPostgres(url: string, { timeoutMs = 60_000 } = {}): Promise<PostgresClient> {
  const client = new pg.Client({ connectionString: url, connectionTimeoutMillis: timeoutMs, query_timeout: timeoutMs })
  let hasEnded = false
  // Queries report errors to their callers. Without a listener, an error would end the process.
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

/** Runs one statement on a separate connection. */
export async function queryPostgres<Row extends object>(
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
