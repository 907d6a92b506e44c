import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { createRequire, findPackageJSON, isBuiltin, stripTypeScriptTypes } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { SourceTextModule } from 'node:vm'

/*
 * Follows the imports of entry files and prints the files reached. It runs in a separate process, because it uses Node's own parser and
 * resolver, which need command-line flags.
 */

export type WalkRequest = {
  /** Absolute paths. */
  entries: readonly string[]
  /** Modules imported on demand but never in production, as named in the code. */
  leftOut: readonly string[]
  /** Reviewed packages with computed imports, which are not reported. */
  known: readonly string[]
  /** Optional packages that others try to load. */
  absent: readonly string[]
}

export type WalkResult = { files: string[]; faults: string[] }

function walkImports({ entries, leftOut, known, absent }: WalkRequest): WalkResult {
  const files = new Set<string>()
  const faults: string[] = []
  const used = new Set<string>()
  const waiting = entries.map((path) => realpathSync(path))

  function reach(from: string, specifier: string, resolve: () => string) {
    if (isBuiltin(specifier)) return
    if (absent.includes(specifier)) return void used.add(specifier)
    try {
      const path = resolve()
      if (isBuiltin(path)) return
      if (!statSync(path).isFile()) throw new Error('not a file')
      waiting.push(realpathSync(path))
    } catch {
      faults.push(`${from} imports ${specifier}, which doesn't exist`)
    }
  }

  function follow(path: string) {
    const url = pathToFileURL(path).href
    const byImport = (specifier: string) =>
      reach(path, specifier, () => {
        const found = import.meta.resolve(specifier, url)
        return found.startsWith('node:') ? found : fileURLToPath(found)
      })
    const { resolve } = createRequire(path)
    const byRequire = (specifier: string) => reach(path, specifier, () => resolve(specifier))

    const { statics, code } = isCommonJs(path) ? { statics: [], code: readCode(path) } : parseModule(path)
    for (const specifier of statics) {
      if (leftOut.includes(specifier)) faults.push(`${path} requires ${specifier}, which is excluded`)
      byImport(specifier)
    }
    for (const specifier of literals(code, /(?<![.\w{])import\(\s*(['"`])([^'"`]+)\1\s*[,)]/g)) {
      if (leftOut.includes(specifier)) used.add(specifier)
      else byImport(specifier)
    }
    const requires = isCommonJs(path)
      ? /(?<![.\w])require\(\s*(['"])([^'"]+)\1\s*\)/g
      : /createRequire\(import\.meta\.url\)\(\s*(['"])([^'"]+)\1\s*\)/g
    for (const specifier of literals(code, requires)) byRequire(specifier)
    for (const name of literals(code, /new URL\(\s*(['"])(\.[^'"]+\.[cm]?[jt]s)\1,\s*import\.meta\.url\)/g))
      byImport(name)

    const doubt = findDoubt(path, code)
    if (doubt === undefined) return
    const name = packageOf(path)
    if (name !== undefined && known.includes(name)) used.add(name)
    else faults.push(`${path} ${doubt}; list the files that it loads`)
  }

  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    if (files.has(path)) continue
    files.add(path)
    if (!/\.(json|node|wasm)$/.test(path)) follow(path)
  }
  // An unused exception could hide a new use.
  for (const name of [...leftOut, ...known, ...absent]) {
    if (!used.has(name)) faults.push(`unused exception: ${name}`)
  }
  return { files: [...files], faults }
}

function isCommonJs(path: string): boolean {
  if (path.endsWith('.cjs')) return true
  if (/\.(mjs|ts)$/.test(path)) return false
  const packageJson = findPackageJSON(pathToFileURL(path))
  return packageJson === undefined || JSON.parse(readFileSync(packageJson, 'utf8')).type !== 'module'
}

/** Removes whole-line comments, because examples in them look like imports. */
function readCode(path: string): string {
  return readFileSync(path, 'utf8')
    .replace(/^\s*\/\*[\s\S]*?\*\//gm, '')
    .replace(/^\s*\/\/.*$/gm, '')
}

function parseModule(path: string): { statics: string[]; code: string } {
  const text = readCode(path)
  const code = path.endsWith('.ts') ? stripTypeScriptTypes(text) : text
  const { moduleRequests } = new SourceTextModule(code, { identifier: path })
  return { statics: moduleRequests.map(({ specifier }) => specifier), code }
}

function literals(code: string, pattern: RegExp): string[] {
  return [...code.matchAll(pattern)].flatMap((match) => match[2] ?? [])
}

/** Finds code that makes the loaded files uncertain. */
function findDoubt(path: string, code: string): string | undefined {
  if (/(?<![.\w{])import\(\s*(?!['"`]|\/\*)/.test(code)) return 'has a computed import'
  if (!isCommonJs(path)) {
    const others = code.replace(/createRequire\(import\.meta\.url\)\(\s*['"][^'"]+['"]\s*\)/g, '')
    if (/createRequire\(/.test(others)) return 'creates a separate require'
  } else {
    if (/(?<![.\w])require\(\s*(?!['"])/.test(code)) return 'has a computed require'
    if (/(?<![.\w])require(?![\w(])(?!\.main\b)/.test(code)) return 'passes require on'
  }
  if (packageOf(path) === undefined) return undefined
  return /__dirname|import\.meta\.(url|dirname|filename)|readFileSync/.test(code) ? 'opens files' : undefined
}

/** The package in node_modules that a file belongs to. */
function packageOf(path: string): string | undefined {
  return /^.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]
}

const request: WalkRequest = JSON.parse(readFileSync(0, 'utf8'))
const missing = request.entries.filter((path) => !existsSync(path))
const result =
  missing.length > 0 ? { files: [], faults: missing.map((path) => `${path} not found`) } : walkImports(request)
process.stdout.write(JSON.stringify(result))
