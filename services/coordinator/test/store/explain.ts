import type { Kysely } from 'kysely'
import type { Tables } from '../../src/store/tables.ts'

/** The same database, that answers each statement with nothing and keeps its plan. */
export function explain(db: Kysely<Tables>) {
  const plans: string[] = []
  const explaining = db.withPlugin({
    transformQuery({ node }) {
      // Not a question, but how it is to be asked.
      if (node.kind === 'RawNode' && node.sqlFragments[0]?.startsWith('set local')) return node
      if (node.kind === 'RawNode')
        return { ...node, sqlFragments: [`explain ${node.sqlFragments[0]}`, ...node.sqlFragments.slice(1)] }
      return node.kind === 'SelectQueryNode' ? { ...node, explain: { kind: 'ExplainNode' } } : node
    },
    async transformResult({ result }) {
      if (result.rows.length > 0) plans.push(result.rows.map((row) => row['QUERY PLAN']).join('\n'))
      return { ...result, rows: [] }
    },
  })
  return { plans, db: explaining }
}
