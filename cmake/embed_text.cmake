# Writes a text file as a C++ source: cmake -DINPUT=... -DOUTPUT=... -DHEADER=... -DNAMESPACE=... -DNAME=... -P embed_text.cmake
file(READ "${INPUT}" text)
if(text MATCHES "\\)embedded_text\"")
  message(FATAL_ERROR "${INPUT} has the end of its own quotation in it: )embedded_text\"")
endif()
file(WRITE "${OUTPUT}" "#include \"${HEADER}\"\n\nnamespace ${NAMESPACE} {\n\nconst char* const ${NAME} = R\"embedded_text(")
file(APPEND "${OUTPUT}" "${text}")
file(APPEND "${OUTPUT}" ")embedded_text\";\n\n}\n")
