/**
 * The launcher's machine code for x64 (Intel SDM, volume 2), with assembly on the right. It finds the program named by `argv[1]`, pushes
 * its allowed variables and its arguments on the stack, and executes Node. System call numbers are in Linux's
 * arch/x86/entry/syscalls/syscall_64.tbl.
 */
export const code = `
  49 89 e4                ; mov r12,rsp  # the stack: argc, argv[0] …, 0, envp[0] …, 0
  4d 8b 2c 24             ; mov r13,[r12]  # argc
  49 83 fd 02             ; cmp r13,0x2  # a name is required
  0f 82 <<refuse>>        ; jb refuse
  bb {programs}           ; mov ebx,programs  # rows of four: name, arguments, variables, whether it takes arguments
nextProgram:
  48 8b 3b                ; mov rdi,[rbx]
  48 85 ff                ; test rdi,rdi
  0f 84 <<refuse>>        ; je refuse
  49 8b 74 24 10          ; mov rsi,[r12+0x10]  # argv[1]
nextLetter:
  8a 07                   ; mov al,[rdi]
  3a 06                   ; cmp al,[rsi]
  75 <otherProgram>       ; jne otherProgram
  84 c0                   ; test al,al
  74 <found>              ; je found
  48 ff c7                ; inc rdi
  48 ff c6                ; inc rsi
  eb <nextLetter>         ; jmp nextLetter
otherProgram:
  48 83 c3 20             ; add rbx,0x20  # the next row
  eb <nextProgram>        ; jmp nextProgram
found:
  49 83 fd 02             ; cmp r13,0x2  # more arguments than the name
  74 <build>              ; je build
  48 83 7b 18 00          ; cmp [rbx+0x18],0x0  # only if the program takes them
  0f 84 <<refuse>>        ; je refuse
build:
  6a 00                   ; push 0x0  # end of the new environment, which grows downwards
  4f 8d 74 ec 10          ; lea r14,[r12+r13*8+0x10]  # envp
nextVariable:
  4d 8b 3e                ; mov r15,[r14]
  4d 85 ff                ; test r15,r15
  74 <variablesDone>      ; je variablesDone
  49 83 c6 08             ; add r14,0x8
  48 8b 6b 10             ; mov rbp,[rbx+0x10]
nextName:
  48 8b 7d 00             ; mov rdi,[rbp]  # next allowed variable
  48 85 ff                ; test rdi,rdi
  74 <nextVariable>       ; je nextVariable
  48 83 c5 08             ; add rbp,0x8
  4c 89 fe                ; mov rsi,r15
nextSign:
  8a 07                   ; mov al,[rdi]
  84 c0                   ; test al,al  # the whole name matches: keep the variable
  74 <keep>               ; je keep
  3a 06                   ; cmp al,[rsi]
  75 <nextName>           ; jne nextName
  48 ff c7                ; inc rdi
  48 ff c6                ; inc rsi
  eb <nextSign>           ; jmp nextSign
keep:
  41 57                   ; push r15  # drop any other variable
  eb <nextVariable>       ; jmp nextVariable
variablesDone:
  bf {variable}           ; mov edi,variable  # set for every program
  57                      ; push rdi
  48 89 e2                ; mov rdx,rsp  # envp of the program
  6a 00                   ; push 0x0  # argv of the program ends here
nextArgument:
  49 ff cd                ; dec r13  # its other arguments, last first
  49 83 fd 02             ; cmp r13,0x2
  72 <fixed>              ; jb fixed
  43 ff 74 ec 08          ; push [r12+r13*8+0x8]
  eb <nextArgument>       ; jmp nextArgument
fixed:
  48 8b 6b 08             ; mov rbp,[rbx+0x8]  # its fixed arguments, last first
nextFixed:
  48 8b 7d 00             ; mov rdi,[rbp]
  48 85 ff                ; test rdi,rdi
  74 <ready>              ; je ready
  57                      ; push rdi
  48 83 c5 08             ; add rbp,0x8
  eb <nextFixed>          ; jmp nextFixed
ready:
  48 89 e6                ; mov rsi,rsp  # argv of the program
  bf {folder}             ; mov edi,folder
  b8 50 00 00 00          ; mov eax,0x50  # chdir
  0f 05                   ; syscall
  48 85 c0                ; test rax,rax
  75 <refuse>             ; jne refuse
  bf {node}               ; mov edi,node
  b8 3b 00 00 00          ; mov eax,0x3b  # execve, which returns only on failure
  0f 05                   ; syscall
refuse:
  bf 02 00 00 00          ; mov edi,0x2  # standard error
  be {refused}            ; mov esi,refused
  ba {refusedBytes}       ; mov edx,refusedBytes
  b8 01 00 00 00          ; mov eax,0x1  # write
  0f 05                   ; syscall
  bf 40 00 00 00          ; mov edi,0x40  # EX_USAGE
  b8 3c 00 00 00          ; mov eax,0x3c  # exit
  0f 05                   ; syscall
`
