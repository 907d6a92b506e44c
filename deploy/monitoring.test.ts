import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errorCodes } from '@countersign/protocol/errorCodes'
import { findProgram } from '@countersign/testing'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { healthy, type World, wrong, wrongAtOnce } from './monitoring/worlds.ts'
import { compose, documents, read } from './test/manifests.ts'
import { type Alert, alerts, alertsPath, dashboard, findSelectors, panelExpressions } from './test/promql.ts'

const RUNBOOKS = 'https://github.com/countersign/countersign/blob/main/docs/run/monitoring-and-runbooks.md#'
const names = alerts.map(({ alert }) => alert)
const metricsOf = (expressions: readonly string[]) =>
  new Set(expressions.flatMap(findSelectors).map(({ metric }) => metric))

describe('an alert', () => {
  test.each(alerts.map((alert) => [alert.alert, alert] as const))(
    '%s has a severity, a summary, a description and a runbook',
    (_, alert) => {
      expect(alert).toEqual({
        alert: expect.stringMatching(/^Countersign[A-Z][A-Za-z]+$/),
        expr: expect.any(String),
        for: expect.stringMatching(/^\d+[mh]$/),
        labels: { severity: expect.stringMatching(/^(critical|warning)$/) },
        annotations: {
          summary: expect.stringMatching(/^.{10,80}[^.]$/),
          description: expect.stringMatching(/\.$/),
          runbook_url: RUNBOOKS + alert.alert.toLowerCase(),
        },
      } satisfies Record<keyof Alert, unknown>)
    },
  )

  test('has a unique name and exactly one runbook, which says what to do', () => {
    expect(new Set(names).size).toBe(names.length)
    const sections = read('docs/run/monitoring-and-runbooks.md')
      .split(/^##+ /m)
      .filter((section) => section.startsWith('Countersign'))
    expect(sections.map((section) => section.split('\n', 1)[0])).toEqual(names)
    for (const section of sections) {
      const labels = [...section.matchAll(/^- \*\*(.+?):\*\* \S/gm)].map(([, label]) => label)
      expect(['Check, Do', 'Do'], section.split('\n', 1)[0]).toContain(labels.join(', '))
    }
  })

  test('about signing counts every 5xx code except shutting_down and receipt_unavailable', () => {
    const exceptions = ['shutting_down', 'receipt_unavailable']
    const faults = Object.entries(errorCodes).flatMap(([code, { status }]) =>
      status >= 500 && !exceptions.includes(code) ? [code] : [],
    )
    for (const name of ['CountersignNothingSigned', 'CountersignSigningFails']) {
      const [first] = findSelectors(alerts.find(({ alert }) => alert === name)?.expr ?? '')
      expect(first?.labels.code?.toSorted(), name).toEqual(faults.toSorted())
    }
  })

  test('uses only jobs that the scrape configurations define', () => {
    const used = alerts.flatMap(({ expr }) => findSelectors(expr).flatMap(({ labels }) => labels.job ?? []))
    const jobsOf = (path: string) =>
      (parse(read(path)) as { scrape_configs: { job_name: string }[] }).scrape_configs.map(({ job_name }) => job_name)
    for (const path of ['deploy/compose/prometheus.yml', 'deploy/monitoring/scrape.kubernetes.yaml']) {
      expect([...new Set(used)].toSorted()).toEqual([...jobsOf(path), 'witnesses'].toSorted())
    }
  })
})

describe('the dashboard', () => {
  test('gives each panel a unique id and at least one query', () => {
    const ids = dashboard.panels.map(({ id }) => id)
    expect(new Set(ids).size).toBe(ids.length)
    for (const { type, title, targets = [] } of dashboard.panels) {
      expect(targets.length > 0, title).toBe(type !== 'row')
      expect(new Set(targets.map(({ refId }) => refId)).size).toBe(targets.length)
    }
  })

  test('shows every Countersign metric that an alert uses', () => {
    const shown = metricsOf(panelExpressions)
    const ours = [...metricsOf(alerts.map(({ expr }) => expr))].filter((metric) => metric.startsWith('countersign_'))
    expect(ours.filter((metric) => !shown.has(metric))).toEqual([])
  })
})

describe('deployment', () => {
  test('Compose mounts the rules where its Prometheus reads them', () => {
    const { rule_files } = parse(read('deploy/compose/prometheus.yml')) as { rule_files: string[] }
    const mounts = (compose.services.metrics?.volumes ?? []) as string[]
    expect(rule_files.map((path) => `./monitoring/alerts.yaml:${path}:ro`)).toEqual([
      mounts.find((mount) => mount.startsWith('./monitoring/')),
    ])
  })

  test('the Kubernetes jobs select exactly the pods with metrics', () => {
    type Relabel = { source_labels: string[]; regex?: string }
    const { scrape_configs } = parse(read('deploy/monitoring/scrape.kubernetes.yaml')) as {
      scrape_configs: { relabel_configs: Relabel[] }[]
    }
    const kept = scrape_configs.map(({ relabel_configs }) => relabel_configs.flatMap(({ regex = [] }) => regex))
    const pods = documents.flatMap(({ metadata, spec }) =>
      (spec?.template?.spec.containers ?? []).flatMap(({ ports = [] }) =>
        ports.flatMap(({ name }) => (name === 'metrics' ? [[metadata.name, name]] : [])),
      ),
    )
    expect(kept).toEqual(pods)
  })

  test('the ConfigMaps contain the rules and the dashboard', () => {
    const { configMapGenerator } = parse(read('deploy/monitoring/kustomization.yaml')) as {
      configMapGenerator: { files: string[] }[]
    }
    const files = configMapGenerator.flatMap((one) => one.files.map((file) => file.replace(/^.*=/, '')))
    expect(files).toEqual(['alerts.yaml', 'dashboard.json'])
  })
})

describe('worlds.ts', () => {
  test('has a world for each alert, and the healthy world has every metric that the rules use', () => {
    expect(Object.keys(wrong)).toEqual(names)
    const known = new Set(Object.keys(healthy).map((series) => series.replace(/\{.*/, '')))
    expect([...metricsOf(alerts.map(({ expr }) => expr))].filter((metric) => !known.has(metric))).toEqual([])
  })
})

const promtool = findProgram('promtool')
if (promtool === undefined) console.log('skipped the alert rules: promtool not found (Debian package prometheus)')

describe.runIf(promtool !== undefined)('promtool', () => {
  const run = (...args: string[]) => spawnSync(promtool ?? '', args, { encoding: 'utf8' })

  test('accepts the rules', () => {
    expect(run('check', 'rules', alertsPath)).toMatchObject({
      status: 0,
      stdout: expect.stringContaining(`${names.length} rules`),
    })
  })

  test('every alert fires in its world, and none fires in the healthy world', () => {
    const cases = [...Object.entries(wrong), ...Object.entries(wrongAtOnce)].map(([alert, world]) =>
      toCase(alert, { ...healthy, ...world }, [`alertname="${alert}", alertstate="firing"`, 1]),
    )
    const { status, stdout, stderr } = fire([toCase('healthy', healthy, ['alertname=~".+"', 0]), ...cases])
    expect({ status, output: stdout + stderr }).toMatchObject({ status: 0 })
  })

  test('where only witnesses are watched, no alert fires except the one that the README says to remove', () => {
    const removed = 'CountersignNoCoordinator'
    expect(read('deploy/monitoring/README.md')).toContain(`without \`${removed}\``)
    const ofWitnesses = Object.entries(healthy).filter(([series]) => series.includes('job="witnesses"'))
    const world = Object.fromEntries(ofWitnesses)
    const { status, stdout, stderr } = fire([
      toCase('witnesses', world, [`alertname!="${removed}"`, 0]),
      toCase(removed, world, [`alertname="${removed}", alertstate="firing"`, 1]),
    ])
    expect({ status, output: stdout + stderr }).toMatchObject({ status: 0 })
  })

  test('fails when an alert does not fire', () => {
    expect(fire([toCase('healthy', healthy, ['alertname="CountersignNoEnclave"', 1])]).status).toBe(1)
  })

  /** Expects a number of alerts after 100 minutes. */
  function toCase(name: string, world: World, [selector, count]: readonly [string, number]) {
    return {
      name,
      interval: '1m',
      input_series: Object.entries(world).map(([series, values]) => ({ series, values })),
      promql_expr_test: [
        {
          expr: `count(ALERTS{${selector}}) or vector(0)`,
          eval_time: '100m',
          exp_samples: [{ labels: '{}', value: count }],
        },
      ],
    }
  }

  function fire(tests: readonly ReturnType<typeof toCase>[]) {
    const folder = mkdtempSync(join(tmpdir(), 'countersign-alerts-'))
    try {
      const path = join(folder, 'tests.yaml')
      // An alert needs at most two evaluations, so five minutes suffice.
      writeFileSync(path, JSON.stringify({ rule_files: [alertsPath], evaluation_interval: '5m', tests }))
      return run('test', 'rules', path)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  }
})
