import { globSync, readFileSync } from 'node:fs'
import { join, posix } from 'node:path'
import { parseSync } from 'vite'

/** One import between two source files of the repository; paths are relative to its root. */
export type Import = {
  from: string
  to: string
  /** It imports only types. */
  isType: boolean
}

/** Any node of the syntax tree (ESTree, with TypeScript). */
type Node = { type: string; [member: string]: unknown }

const SOURCE = '**/*.{ts,tsx,mts,mjs}'
/** Installed or generated files. */
const LEFT_OUT = new Set(['node_modules', 'dist'])

/**
 * Every import between source files under a root: of values and types, re-exports, and `import('…')` with a literal. Names of the
 * repository's packages lead to the file under their `source` condition, as in tests.
 */
export function readImports(root: string): Import[] {
  const exclude = (path: string) => LEFT_OUT.has(posix.basename(path)) || /(?:^|\/)\.[^/.]/.test(path)
  const files = new Set(globSync(SOURCE, { cwd: root, exclude }))
  const packages = readPackages(root, exclude)
  const imports: Import[] = []
  for (const from of files) {
    const text = readFileSync(join(root, from), 'utf8')
    for (const { specifier, isType } of parseImports(from, text)) {
      const to = specifier.startsWith('.') ? posix.join(posix.dirname(from), specifier) : packages.get(specifier)
      if (to === undefined || !files.has(to)) continue
      imports.push({ from, to, isType })
    }
  }
  return imports
}

/** The source file for each import name of the repository's packages. */
function readPackages(root: string, exclude: (path: string) => boolean): Map<string, string> {
  const entries = new Map<string, string>()
  for (const path of globSync('**/package.json', { cwd: root, exclude })) {
    const { name, exports = {} } = JSON.parse(readFileSync(join(root, path), 'utf8')) as {
      name?: string
      exports?: Record<string, { source?: string }>
    }
    for (const [subpath, { source }] of Object.entries(exports)) {
      if (name !== undefined && source !== undefined) {
        entries.set(posix.join(name, subpath), posix.join(posix.dirname(path), source))
      }
    }
  }
  return entries
}

type ParsedImport = { specifier: string; isType: boolean }

function parseImports(path: string, text: string): ParsedImport[] {
  const { program, errors } = parseSync(path, text)
  if (errors.length > 0) throw new Error(`${path} cannot be parsed: ${errors[0]?.message}`)
  const found: ParsedImport[] = []
  visit(program, (node) => {
    const specifier = toSpecifier(node)
    if (specifier !== undefined) found.push({ specifier, isType: isTypeImport(node) })
  })
  return found
}

function visit(value: unknown, see: (node: Node) => void): void {
  if (Array.isArray(value)) for (const item of value) visit(item, see)
  else if (typeof value === 'object' && value !== null) {
    if ('type' in value && typeof value.type === 'string') see(value as Node)
    for (const member of Object.values(value)) visit(member, see)
  }
}

const IMPORTING = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'ImportExpression',
  'TSImportType',
])

/** The literal that a node imports from, if it imports. */
function toSpecifier(node: Node): string | undefined {
  if (!IMPORTING.has(node.type)) return undefined
  const { value } = (node.source ?? {}) as { value?: unknown }
  return typeof value === 'string' ? value : undefined
}

function isTypeImport(node: Node): boolean {
  if (node.type === 'TSImportType' || node.importKind === 'type' || node.exportKind === 'type') return true
  const specifiers = (node.specifiers ?? []) as Node[]
  return (
    specifiers.length > 0 &&
    specifiers.every(({ importKind, exportKind }) => importKind === 'type' || exportKind === 'type')
  )
}
