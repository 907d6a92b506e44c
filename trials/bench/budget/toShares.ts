import { fileURLToPath } from 'node:url'
import { ownCode, type Stage, sharedCode } from './stages.ts'

/** Of the inspector's `Profiler.stop`, what is read here. */
export type Profile = {
  nodes: readonly {
    id: number
    callFrame: { functionName: string; url: string }
    children?: readonly number[]
  }[]
  samples?: readonly number[]
  /** Microseconds before each sample. */
  timeDeltas?: readonly number[]
}

/** The shares of a thread's busy time, and of it what is in no table, by file and function. */
export type Shares = { stages: Map<Stage, number>; others: Map<string, number> }

type Place = { path: string; functionName: string }

const IDLE = '(idle)'
const GARBAGE = '(garbage collector)'

/** What the profiles of like threads say, by stage. `root` is the checkout whose code ran. */
export function toShares(profiles: readonly Profile[], root: string): Shares {
  const stages = new Map<Stage, number>()
  const others = new Map<string, number>()
  let busy = 0
  for (const profile of profiles) {
    const ticks = countTicks(profile)
    const nodes = new Map(profile.nodes.map((node) => [node.id, node]))
    const parents = new Map(profile.nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id])))
    for (const [id, microseconds] of ticks) {
      const stack: Place[] = []
      for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
        const frame = nodes.get(at)?.callFrame
        if (frame !== undefined) stack.push({ path: toPath(frame.url, root), functionName: frame.functionName })
      }
      if (stack[0] === undefined || stack[0].functionName === IDLE) continue
      busy += microseconds
      const stage = toStage(stack)
      stages.set(stage, (stages.get(stage) ?? 0) + microseconds)
      if (stage !== 'other') continue
      const { path, functionName } = stack.find(isFile) ?? stack[0]
      const name = `${path} ${functionName}`.trim()
      others.set(name, (others.get(name) ?? 0) + microseconds)
    }
  }
  const share = <Key>(times: Map<Key, number>) => new Map([...times].map(([key, time]) => [key, time / busy]))
  return { stages: share(stages), others: share(others) }
}

/** From the innermost function outwards. */
function toStage(stack: readonly Place[]): Stage {
  for (const table of [ownCode, sharedCode]) {
    for (const place of stack) {
      const stage = find(table, place)
      if (stage !== undefined) return stage
    }
  }
  if (stack.some(isFile)) return 'other'
  return stack[0]?.functionName === GARBAGE ? 'garbage collection' : 'runtime'
}

/** Neither Node's own code nor native code. */
function isFile({ path }: Place): boolean {
  return path !== '' && !path.startsWith('node:')
}

function find(table: typeof ownCode, { path, functionName }: Place): Stage | undefined {
  let found: { stage: Stage; length: number } | undefined
  for (const [stage, beginnings] of table) {
    for (const beginning of beginnings) {
      const [file = '', name = ''] = beginning.split('#')
      const isHere = path.startsWith(file) && functionName.startsWith(name)
      if (isHere && beginning.length > (found?.length ?? 0)) found = { stage, length: beginning.length }
    }
  }
  return found?.stage
}

/** From the root of its checkout or from `node_modules`, wherever that lies. */
function toPath(url: string, root: string): string {
  const path = url.startsWith('file:') ? fileURLToPath(url) : url
  const installed = path.lastIndexOf('/node_modules/')
  if (installed >= 0) return path.slice(installed + 1)
  return path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path
}

function countTicks({ samples = [], timeDeltas = [] }: Profile): Map<number, number> {
  const ticks = new Map<number, number>()
  for (const [index, id] of samples.entries()) ticks.set(id, (ticks.get(id) ?? 0) + Math.max(timeDeltas[index] ?? 0, 0))
  return ticks
}
