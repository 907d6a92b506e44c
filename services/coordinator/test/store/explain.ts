import type { Kysely } from 'kysely'
import type { Tables } from '../../src/store/tables.ts'

/** The same database, which records the plan of each statement and returns an empty result. */
export function explain(db: Kysely<Tables>) {
  const plans: string[] = []
  const explaining = db.withPlugin({
    transformQuery({ node }) {
      // A setting, not a query.
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
