import { globSync } from 'node:fs'
import { join } from 'node:path'
import { validate as validateDockerfile } from 'dockerfile-utils'
import { describe, expect, test } from 'vitest'
import { checkDockerfile } from './rules/checkDockerfile.ts'
import { isSent, read } from './test/manifests.ts'

const root = join(import.meta.dirname, '..')
type Manifest = { name: string; dependencies?: Record<string, string> }

const dockerfiles = (['enclave', 'coordinator', 'web', 'witness'] as const).map((name) => ({
  name,
  text: read(`deploy/${name}.Dockerfile`),
}))

describe('the Dockerfiles', () => {
  test.each(dockerfiles)('$name: a validator finds nothing', ({ text }) => {
    expect(validateDockerfile(text)).toEqual([])
  })

  test.each(dockerfiles)('$name: our own rules hold', ({ name, text }) => {
    expect(checkDockerfile(text, { image: name, isSent })).toEqual([])
  })

  test.each<[string, (text: string) => string, RegExp]>([
    ['root', (text) => text.replace('USER 65532:65532', 'USER 0:0'), /USER/],
    ['a user by name', (text) => text.replace('USER 65532:65532', 'USER node:node'), /USER/],
    ['no user', (text) => text.replace('USER 65532:65532\n', ''), /USER/],
    [
      'latest',
      (text) => text.replace(/ARG NODE_IMAGE=.*/, 'ARG NODE_IMAGE=node:latest'),
      /FROM: node:latest is not pinned/,
    ],
    ['a major version', (text) => text.replace(/ARG NODE_IMAGE=.*/, 'ARG NODE_IMAGE=node:24'), /is not pinned/],
    ['no version', (text) => text.replace(/ARG NODE_IMAGE=.*/, 'ARG NODE_IMAGE=node'), /is not pinned/],
    ['ADD', (text) => text.replace('WORKDIR /src', 'ADD https://example.com/x /src/'), /ADD/],
    [
      'a source that is gone',
      (text) => text.replace('COPY deploy/measure.ts', 'COPY deploy/gone.ts'),
      /gone\.ts is not there/,
    ],
    [
      'a source that is not sent',
      (text) => text.replace('COPY deploy/measure.ts', 'COPY docs/sdk.md'),
      /sdk\.md is not there/,
    ],
    ['scripts of packages', (text) => text.replaceAll('--ignore-scripts', ''), /may run scripts/],
    ['a stage that is gone', (text) => text.replaceAll('--from=build', '--from=built'), /no stage built/],
    [
      'more than was measured',
      (text) => text.replace(/FROM scratch\nLABEL/, 'FROM debian:13.1\nLABEL'),
      /more than what was measured/,
    ],
    ['Node at once', (text) => text.replace('"/bin/launch"]\n', '"/bin/node"]\n'), /before the launcher/],
    [
      'a shell before it',
      (text) => text.replace('ENTRYPOINT ["/bin/launch"]', 'ENTRYPOINT /bin/launch'),
      /before the launcher/,
    ],
    ['another program', (text) => text.replace('CMD ["enclave"]', 'CMD ["-e", "1"]'), /CMD: not the program/],
    [
      'health without it',
      (text) => text.replace('CMD ["/bin/launch", "health"]', 'CMD ["/bin/node"]'),
      /without the launcher/,
    ],
    ['an environment', (text) => text.replace('USER', 'ENV NODE_OPTIONS=--import=data:x\nUSER'), /ENV: the launcher/],
    [
      'an environment in small letters, which builders read as well',
      (text) => text.replace('USER', 'env NODE_OPTIONS=--import=data:x\nUSER'),
      /ENV: the launcher/,
    ],
    ['a second entry point in small letters', (text) => `${text}Entrypoint ["/bin/node"]\n`, /before the launcher/],
    [
      'a file beside what was measured',
      (text) => text.replace('WORKDIR /app', 'COPY deploy/measure.ts /app/services/enclave/src/main.ts\nWORKDIR /app'),
      /more than what was measured/,
    ],
    [
      'a file of the builder beside what was measured',
      (text) => text.replace('WORKDIR /app', 'COPY --from=build /bin/sh /bin/sh\nWORKDIR /app'),
      /more than what was measured/,
    ],
    ['a builder of somebody else', (text) => `# syntax=example.com/frontend:1.0\n${text}`, /syntax/],
    ['another sign for lines that go on', (text) => `# escape=\`\n${text}`, /escape/],
    ['no health check', (text) => text.replace('HEALTHCHECK', '# HEALTHCHECK'), /HEALTHCHECK/],
    ['something to run at the end', (text) => `${text}RUN true\n`, /RUN/],
    ['no label', (text) => text.replace('image.licenses', 'image.license'), /no licenses/],
  ])('complained about: %s', (_, change, expected) => {
    const text = dockerfiles[0]?.text ?? ''
    expect(change(text)).not.toBe(text)
    expect(checkDockerfile(change(text), { image: 'enclave', isSent }).join('\n')).toMatch(expected)
  })

  // npm links a package of ours for those workspaces alone that are named and need it: a build without it ends at its last step.
  test.each(dockerfiles)('$name: installs what the program that measures imports', ({ text }) => {
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

  test('a validator complains about what is none', () => {
    expect(validateDockerfile('FROM scratch\nCOPPY a b\n')).not.toEqual([])
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
