import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'yaml'
import { read } from './manifests.ts'

/* Parses the files of deploy/monitoring, to compare them with metrics and pages. */

export type Alert = {
  alert: string
  expr: string
  for: string
  labels: { severity: string }
  annotations: { summary: string; description: string; runbook_url: string }
}

export const alertsPath = join(import.meta.dirname, '../monitoring/alerts.yaml')
export const alerts = (parse(readFileSync(alertsPath, 'utf8')) as { groups: { rules: Alert[] }[] }).groups.flatMap(
  ({ rules }) => rules,
)

type Panel = { id: number; type: string; title: string; targets?: { refId: string; expr: string }[] }
export const dashboard = JSON.parse(read('deploy/monitoring/dashboard.json')) as { uid: string; panels: Panel[] }
export const panelExpressions = dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr))

/** A metric in an expression, with the label values that it selects. Alternatives in a pattern are listed separately. */
export type Selector = { metric: string; labels: Readonly<Record<string, readonly string[]>> }

const KEYWORDS = new Set(['and', 'or', 'unless', 'bool', 'offset'])

/** Parses PromQL as used in these files: `metric{label="value", other=~"a|b"}[5m]`. Skips functions and grouping keywords. */
export function findSelectors(expression: string): Selector[] {
  const plain = expression
    .replace(/\[[^\]]*\]/g, ' ')
    .replace(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\([^)]*\)/g, ' ')
  return [...plain.matchAll(/(?<![\w.])([a-z_:][\w:]*)(\{[^}]*\})?(\s*\()?|\{[^}]*\}/gi)].flatMap(
    ([, metric, braces = '', call]) => {
      if (metric === undefined || call !== undefined || KEYWORDS.has(metric)) return []
      const labels = [...braces.matchAll(/(\w+)\s*=~?\s*"([^"]*)"/g)].map(
        ([, label = '', values = '']) => [label, values.split('|')] as const,
      )
      return [{ metric, labels: Object.fromEntries(labels) }]
    },
  )
}

/** Labels by which an expression groups or joins. */
export function findGroupings(expression: string): string[] {
  const groups = expression.matchAll(/\b(?:by|without|on|ignoring)\s*\(([^)]*)\)/g)
  return [...groups].flatMap(([, list = '']) => list.split(',').map((label) => label.trim()))
}

/** Parses Prometheus's text format into samples with their labels, by metric. */
export function parseMetrics(text: string): Map<string, Record<string, string>[]> {
  const samples = new Map<string, Record<string, string>[]>()
  for (const [, name = '', braces = ''] of text.matchAll(/^([a-z_:][\w:]*)(\{.*\})? \S+$/gim)) {
    const labels = [...braces.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(
      ([, label = '', value = '']) => [label, value] as const,
    )
    samples.set(name, [...(samples.get(name) ?? []), Object.fromEntries(labels)])
  }
  return samples
}
