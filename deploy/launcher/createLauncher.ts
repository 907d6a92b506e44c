import { code } from './code.ts'

/** A program that an image can start, and all that reaches it from outside. */
export type LaunchedProgram = {
  /** The script, from the folder of the image, and arguments that it always gets. */
  args: readonly string[]
  /** Whether it takes further arguments, after its own. They follow the script, so Node reads none of them as an option. */
  takesArguments?: boolean
  /** Names of variables. One that ends in `*` stands for all that begin so. */
  env: readonly string[]
}

export type LauncherParameters = {
  /** The program that runs the scripts, and its options. */
  node: string
  flags: readonly string[]
  /** The working directory, and where the scripts are. */
  folder: string
  /** Set for every program, whatever the environment says. */
  variable: string
  programs: Readonly<Record<string, LaunchedProgram>>
}

/** Where the file is in memory: below 2 GiB, so that addresses fit into 32 bits. */
const BASE = 0x400000
const HEADER_BYTES = 64
const SEGMENT_BYTES = 56
const REFUSED = 'launch: refused: expected the name of a program of this image\n'

/**
 * The first program in a container: a static Linux executable for x64, which starts one of a few programs with nothing from outside but
 * the variables that are named here. It is linked with nothing, so there is no loader that would obey `LD_PRELOAD` or `LD_AUDIT` before it
 * runs, and the loader of Node gets an environment without them. Bytes depend on the parameters alone: no compiler takes part.
 */
export function createLauncher(parameters: LauncherParameters): Uint8Array {
  const { node, flags, folder, variable, programs } = parameters
  const data = createData(BASE + HEADER_BYTES + 2 * SEGMENT_BYTES)
  const rows = Object.entries(programs).map(([name, { args, takesArguments = false, env }]) => {
    const [script = '', ...rest] = args
    const whole = [node, ...flags, `${folder}/${script}`, ...rest]
    // Pushed one after the other, the last comes first.
    const argv = data.addList(whole.toReversed().map(data.addText))
    return [data.addText(name), argv, data.addList(env.map(toPrefix).map(data.addText)), takesArguments ? 1 : 0]
  })
  const symbols = {
    programs: data.addList(rows.flat()),
    variable: data.addText(variable),
    folder: data.addText(folder),
    node: data.addText(node),
    refused: data.addText(REFUSED),
    refusedBytes: REFUSED.length,
  }
  const start = data.end()
  const machineCode = assemble(code, symbols)
  const length = start - BASE + machineCode.length
  return Buffer.concat([toHeader(start), ...toSegments(length), data.bytes(), machineCode])
}

/** What a variable of that name begins with. */
function toPrefix(name: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(name)) throw new Error(`${name} is not the name of a variable`)
  return name.endsWith('*') ? name.slice(0, -1) : `${name}=`
}

/** Texts and lists of addresses, each ended by zero, from an address on. */
function createData(from: number) {
  const parts: Buffer[] = []
  let end = from
  function add(bytes: Buffer): number {
    const address = end
    // Lists need no alignment on x64, but it costs little.
    const padded = Buffer.alloc(Math.ceil(bytes.length / 8) * 8)
    bytes.copy(padded)
    parts.push(padded)
    end += padded.length
    return address
  }
  return {
    addText(text: string): number {
      if (text.includes('\0')) throw new Error('a text ends at its first zero')
      return add(Buffer.from(`${text}\0`))
    },
    addList(values: readonly number[]): number {
      const bytes = Buffer.alloc(8 * (values.length + 1))
      values.forEach((value, index) => void bytes.writeBigUInt64LE(BigInt(value), 8 * index))
      return add(bytes)
    },
    end: () => end,
    bytes: () => Buffer.concat(parts),
  }
}

/** Fills in addresses, `{name}`, and how far a jump goes: `<label>` in one byte, `<<label>>` in four. */
function assemble(text: string, symbols: Readonly<Record<string, number>>): Buffer {
  const bytes: number[] = []
  const labels = new Map<string, number>()
  const jumps: { at: number; size: 1 | 4; label: string }[] = []
  for (const line of text.split('\n')) {
    const words = (line.split(';')[0] ?? '').trim().split(/\s+/)
    for (const word of words.filter((one) => one !== '')) {
      const [, label, symbol, near, far, hex] =
        /^(?:(\w+):|\{(\w+)\}|<(\w+)>|<<(\w+)>>|([0-9a-f]{2}))$/.exec(word) ?? []
      const jump = near ?? far
      if (label !== undefined) labels.set(label, bytes.length)
      else if (symbol !== undefined) bytes.push(...toBytes(find(symbols[symbol], symbol), 4))
      else if (jump !== undefined) {
        const size = near === undefined ? 4 : 1
        jumps.push({ at: bytes.length, size, label: jump })
        bytes.push(...toBytes(0, size))
      } else if (hex !== undefined) bytes.push(Number.parseInt(hex, 16))
      else throw new Error(`${word} is no part of the code`)
    }
  }
  for (const { at, size, label } of jumps) {
    // From the end of the instruction, which is that of the distance.
    const distance = find(labels.get(label), label) - (at + size)
    if (size === 1 && (distance < -128 || distance > 127)) throw new Error(`${label} is too far away`)
    bytes.splice(at, size, ...toBytes(distance, size))
  }
  return Buffer.from(bytes)
}

function find(value: number | undefined, name: string): number {
  if (value === undefined) throw new Error(`there is no ${name}`)
  return value
}

function toBytes(value: number, size: 1 | 4): number[] {
  const bytes = Buffer.alloc(size)
  bytes.writeIntLE(value, 0, size)
  return [...bytes]
}

/** The header of an ELF file (System V ABI, chapter 4): an executable for Linux on x64. */
function toHeader(start: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  // Magic, 64 bits, little end first, version 1.
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1])
  // ET_EXEC, EM_X86_64, version 1.
  header.writeUInt16LE(2, 16)
  header.writeUInt16LE(62, 18)
  header.writeUInt32LE(1, 20)
  header.writeBigUInt64LE(BigInt(start), 24)
  // The segments follow; there are no sections.
  header.writeBigUInt64LE(BigInt(HEADER_BYTES), 32)
  header.writeUInt16LE(HEADER_BYTES, 52)
  header.writeUInt16LE(SEGMENT_BYTES, 54)
  header.writeUInt16LE(2, 56)
  return header
}

/** The whole file, to be read and run, never written to; and a stack that is not run. */
function toSegments(length: number): Buffer[] {
  const [PT_LOAD, PT_GNU_STACK] = [1, 0x6474e551]
  const [readAndRun, readAndWrite] = [5, 6]
  const toSegment = (kind: number, flags: number, address: number, size: number) => {
    const segment = Buffer.alloc(SEGMENT_BYTES)
    segment.writeUInt32LE(kind, 0)
    segment.writeUInt32LE(flags, 4)
    for (const [offset, value] of [
      [16, address],
      [24, address],
      [32, size],
      [40, size],
      [48, 0x1000],
    ] as const) {
      segment.writeBigUInt64LE(BigInt(value), offset)
    }
    return segment
  }
  return [toSegment(PT_LOAD, readAndRun, BASE, length), toSegment(PT_GNU_STACK, readAndWrite, 0, 0)]
}
