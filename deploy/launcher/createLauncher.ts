import { code } from './code.ts'

/** A program of an image, with its allowed input. */
export type LaunchedProgram = {
  /** The script, relative to the image's folder, and its fixed arguments. */
  args: readonly string[]
  /** Whether more arguments may follow the fixed ones. They come after the script, so Node parses none of them as an option. */
  takesArguments?: boolean
  /** Names of variables. A name that ends with `*` is a prefix. */
  env: readonly string[]
}

export type LauncherParameters = {
  /** The program that runs the scripts, with its options. */
  node: string
  flags: readonly string[]
  /** The working directory, which contains the scripts. */
  folder: string
  /** Set for every program, overriding the environment. */
  variable: string
  programs: Readonly<Record<string, LaunchedProgram>>
}

/** Memory address of the file, below 2 GiB so that addresses fit into 32 bits. */
const BASE = 0x400000
const HEADER_BYTES = 64
const SEGMENT_BYTES = 56
const REFUSED = 'launch: refused: expected the name of a program of this image\n'

/**
 * Creates the first program of a container: a static Linux executable for x64. It starts one of a few programs, and passes on only the listed
 * variables. It isn't linked, so no loader obeys `LD_PRELOAD` or `LD_AUDIT` before it runs, and Node's loader gets an environment without
 * them. The bytes depend only on the parameters, not on a compiler.
 */
export function createLauncher(parameters: LauncherParameters): Uint8Array {
  const { node, flags, folder, variable, programs } = parameters
  const data = createData(BASE + HEADER_BYTES + 2 * SEGMENT_BYTES)
  const rows = Object.entries(programs).map(([name, { args, takesArguments = false, env }]) => {
    const [script = '', ...rest] = args
    const whole = [node, ...flags, `${folder}/${script}`, ...rest]
    // They are pushed in order, so the last one is read first.
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

/** The prefix of an environment entry for this variable. */
function toPrefix(name: string): string {
  if (!/^[A-Za-z_][A-Za-z0-9_]*\*?$/.test(name)) throw new Error(`invalid variable name: ${name}`)
  return name.endsWith('*') ? name.slice(0, -1) : `${name}=`
}

/** Zero-terminated texts and address lists, starting at an address. */
function createData(from: number) {
  const parts: Buffer[] = []
  let end = from
  function add(bytes: Buffer): number {
    const address = end
    // x64 doesn't require alignment, but it costs little.
    const padded = Buffer.alloc(Math.ceil(bytes.length / 8) * 8)
    bytes.copy(padded)
    parts.push(padded)
    end += padded.length
    return address
  }
  return {
    addText(text: string): number {
      if (text.includes('\0')) throw new Error('invalid text: contains a zero byte')
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

/** Fills in addresses (`{name}`) and jump distances: `<label>` in one byte, `<<label>>` in four. */
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
      else throw new Error(`invalid code: ${word}`)
    }
  }
  for (const { at, size, label } of jumps) {
    // Relative to the end of the instruction, which ends with the distance.
    const distance = find(labels.get(label), label) - (at + size)
    if (size === 1 && (distance < -128 || distance > 127))
      throw new Error(`label ${label} is too far for a one-byte jump`)
    bytes.splice(at, size, ...toBytes(distance, size))
  }
  return Buffer.from(bytes)
}

function find(value: number | undefined, name: string): number {
  if (value === undefined) throw new Error(`undefined symbol: ${name}`)
  return value
}

function toBytes(value: number, size: 1 | 4): number[] {
  const bytes = Buffer.alloc(size)
  bytes.writeIntLE(value, 0, size)
  return [...bytes]
}

/** The ELF header (System V ABI, chapter 4) of an executable for Linux on x64. */
function toHeader(start: number): Buffer {
  const header = Buffer.alloc(HEADER_BYTES)
  // Magic, 64 bits, little endian, version 1.
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1])
  // ET_EXEC, EM_X86_64, version 1.
  header.writeUInt16LE(2, 16)
  header.writeUInt16LE(62, 18)
  header.writeUInt32LE(1, 20)
  header.writeBigUInt64LE(BigInt(start), 24)
  // Segments follow the header; there are no sections.
  header.writeBigUInt64LE(BigInt(HEADER_BYTES), 32)
  header.writeUInt16LE(HEADER_BYTES, 52)
  header.writeUInt16LE(SEGMENT_BYTES, 54)
  header.writeUInt16LE(2, 56)
  return header
}

/** The whole file as one read-only executable segment, and a non-executable stack. */
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
