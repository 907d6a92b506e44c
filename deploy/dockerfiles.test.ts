import { globSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { readNavigation } from '../docs/site/navigation.ts'
import { isPinned } from './test/containers.ts'
import { isSent, read } from './test/manifests.ts'

const root = join(import.meta.dirname, '..')
type Manifest = { name: string; dependencies?: Record<string, string> }

const dockerfiles = (['enclave', 'coordinator', 'web', 'witness'] as const).map((name) => ({
  name,
  text: read(`deploy/${name}.Dockerfile`),
}))

describe('the Dockerfiles', () => {
  test.each(dockerfiles)(
    '$name: the image contains the measured files and starts only its launcher',
    ({ name, text }) => {
      const lines = text
        .replace(/^\s*#.*$/gm, '')
        .replace(/\\\n/g, ' ')
        .split('\n')
      const final = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')))
      const instructions = final.filter((line) => line.trim() !== '' && !/^(LABEL|EXPOSE|WORKDIR) /.test(line))
      expect(instructions).toEqual([
        'FROM scratch',
        'COPY --from=build /src/out/root/ /',
        expect.stringMatching(/^USER [1-9]\d*:[1-9]\d*$/),
        expect.stringMatching(/^HEALTHCHECK .* CMD \["\/bin\/launch", "health"\]$/),
        'ENTRYPOINT ["/bin/launch"]',
        `CMD ["${name}"]`,
      ])
    },
  )

  test.each(dockerfiles)('$name: builds from a pinned image and listed files, without package scripts', ({ text }) => {
    // Directives in comments change how and by which frontend the file is read.
    expect(text).not.toMatch(/^\s*#\s*(syntax|escape)\s*=/im)
    expect(isPinned(/^ARG NODE_IMAGE=(\S+)$/m.exec(text)?.[1] ?? '')).toBe(true)
    expect(text.match(/^FROM (?!scratch|\$\{NODE_IMAGE\})/m)).toBeNull()
    expect(text).not.toMatch(/^ADD /im)
    const installs = [...text.matchAll(/npm (?:ci|install) .*/g)].map(([line]) => line)
    expect(installs.filter((line) => !line.includes('--ignore-scripts'))).toEqual([])
    const sources = [...text.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '))
    expect(sources.filter((source) => !isSent(source))).toEqual([])
  })

  // npm links a package of ours only for named workspaces that need it. A build without it fails at its last step.
  test.each(dockerfiles)('$name: installs the imports of the measuring program', ({ text }) => {
    const needs = new Map(
      globSync('{packages,services,apps}/*/package.json', { cwd: root }).map((path) => {
        const { name, dependencies = {} } = JSON.parse(read(path)) as Manifest
        return [name, Object.keys(dependencies)]
      }),
    )
    const installed = new Set([...text.matchAll(/--workspace (\S+)/g)].map(([, name = '']) => name))
    for (const name of installed) for (const needed of needs.get(name) ?? []) installed.add(needed)
    const imported = globSync('deploy/measure{.ts,/**/*.ts}', { cwd: root, exclude: ['**/*.test.ts'] }).flatMap(
      (path) => [...read(path).matchAll(/ from '(@countersign\/\w+)/g)].map(([, name]) => name),
    )
    expect(imported).toContain('@countersign/service')
    expect([...installed]).toEqual(expect.arrayContaining(imported))
  })

  test('the coordinator image is built from every page of the documentation site', () => {
    const [, text = ''] = read('deploy/coordinator.Dockerfile').split('AS build')
    const copied = [...text.matchAll(/^COPY (?!--from)(.*) \S+$/gm)].flatMap(([, paths = '']) => paths.split(' '))
    const { groups, decisions } = readNavigation(root)
    const pages = [...groups.flatMap(({ sources }) => sources), ...decisions].map(({ file }) => file)
    const isCopied = (page: string) => copied.some((path) => page === path || page.startsWith(`${path}/`))
    expect(pages.length).toBeGreaterThan(30)
    expect(pages.filter((page) => !isCopied(page))).toEqual([])
  })

  test('secrets, state and installed packages are not sent to the builder', () => {
    for (const path of ['.env', '.git', '.countersign', 'node_modules', 'packages/sdk/dist', 'deploy/.env']) {
      expect(isSent(path), path).toBe(false)
    }
    expect(read('.dockerignore').split('\n')).toEqual(
      expect.arrayContaining(['*', '**/node_modules', '**/dist', '**/.env']),
    )
  })
})
