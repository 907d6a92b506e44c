import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { build, type InlineConfig } from 'vite'

/** `bytes` depend only on the sources and the locked packages: not on the folder, the time or the processor. */
export type BundleFile = { name: 'countersign-verify.mjs' | 'verify.html'; bytes: Buffer }

const VERIFIER = 'apps/verifier'

/** Builds the verifier as one program for Node 20 or later, and as one page. Both stay readable: nothing is minified. */
export async function createBundle(root = resolve(import.meta.dirname, '../..')): Promise<BundleFile[]> {
  const shared = {
    root,
    configFile: false,
    envDir: false,
    publicDir: false,
    logLevel: 'warn',
    mode: 'production',
  } as const
  const define = { 'process.env.NODE_ENV': '"production"' }
  const output = { write: false, minify: false, license: true, modulePreload: false } as const
  const program = await bundle({
    ...shared,
    define,
    ssr: { noExternal: true, resolve: { conditions: ['source', 'module', 'node', 'production'] } },
    build: { ...output, target: 'node20', ssr: `${VERIFIER}/src/cli.ts`, rolldownOptions: { cwd: root } },
  })
  const page = await bundle({
    ...shared,
    define,
    resolve: { conditions: ['source', 'module', 'browser', 'production'] },
    build: {
      ...output,
      target: 'es2023',
      rolldownOptions: { cwd: root, input: `${VERIFIER}/page/page.ts`, output: { format: 'iife' } },
    },
  })
  const read = (name: string) => readFileSync(join(root, VERIFIER, 'page', name), 'utf8')
  return [
    { name: 'countersign-verify.mjs', bytes: Buffer.from(program) },
    {
      name: 'verify.html',
      bytes: Buffer.from(createPage(read('verify.html'), { script: page, style: read('page.css') })),
    },
  ]
}

/** Returns the code of an entry with everything that it imports, and the licences of the packages among that. */
async function bundle(config: InlineConfig): Promise<string> {
  const built = await build(config)
  const files = (Array.isArray(built) ? built : [built]).flatMap((one) => ('output' in one ? one.output : []))
  const [chunk, ...others] = files.filter((file) => file.type === 'chunk')
  const [licenses] = files.filter((file) => file.type === 'asset')
  if (chunk === undefined || others.length > 0 || licenses === undefined) {
    throw new Error(`expected one script and its licences, got ${files.map(({ fileName }) => fileName).join(', ')}`)
  }
  return `${chunk.code.trimEnd()}\n\n/*\n${String(licenses.source).replaceAll('*/', '* /').trimEnd()}\n*/\n`
}

/** Puts script and style into the page. Its policy names their hashes, so a browser runs nothing else. */
function createPage(template: string, parts: { script: string; style: string }): string {
  const script = `\n${parts.script}`
  const style = `\n${parts.style}`
  // An HTML parser would end or nest the script here.
  const fault = /<\/script|<!--/i.exec(script)
  if (fault !== null) throw new Error(`the page's script contains ${fault[0]}`)
  return template
    .replace('SCRIPT_HASH', toSource(script))
    .replace('STYLE_HASH', toSource(style))
    .replace('</style>', () => `${style}</style>`)
    .replace('</script>', () => `${script}</script>`)
}

function toSource(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`
}
